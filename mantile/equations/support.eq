# What a framework cannot run by its documents: data types, chips, ways to spread a model. Statements are a
# table, framework/what and 1 where it cannot, 0 where it runs: framework/weights/family, framework/kv/family
# and framework/way on all chips, with a generation behind it on those; framework/chip/generation the chip
# itself. What no document settles is allowed.

define cannot(what) = sum_where(support.flag, support.name, what)

[support] What the framework cannot run | of what is asked; 0 where it runs or nobody says
when own_build
counts      What documents say counts [flag] = where(inputs.framework_support == 'documented', 1, 0)
            ; a build of one's own is taken to run everything

chip        It cannot run on this generation [flag]
            = cannot(join(inputs.framework, '/chip/', hardware.generation))
over support.chip = it * counts | when own_build

each format asked
{of}.key    As stated, {words} [1] = join(inputs.framework, '/{role}/', index(datatype.family, {number}))
            ; framework and family of the data type

[support] What the framework cannot run
each format asked
{of}.cannot  It cannot run the data type, {words} [flag]
            = cannot({of}.key) + cannot(join({of}.key, '/', hardware.generation))
            ; on any chip, or on those of this generation

formats     Data types that it cannot run [flag] = sum([{of}.cannot each format asked])
over support.formats = it * counts | when own_build

for way | words in tp | Tensor parallelism; pp | Pipeline parallelism; ep | Expert parallelism;
  attention_dp | Attention-DP; cp | Context parallelism
{way}       {words} that it does not have [flag]
            = where(inputs.{way} > 1, cannot(join(inputs.framework, '/{way}')), 0)

when decode_CP
dcp         Decode context parallelism that it does not have [flag]
            = where(inputs.dcp > 1, cannot(join(inputs.framework, '/dcp')), 0)

ways        Degrees above 1 that it does not have [flag] = sum([tp, pp, ep, attention_dp, cp])
over support.ways = sum([tp, pp, ep, attention_dp, cp, dcp]) | when decode_CP
over support.ways = it * counts | when own_build

when disaggregated
disaggregated  Workers of their own that it does not have [flag]
            = where(inputs.disaggregated > 0, cannot(join(inputs.framework, '/disaggregated')), 0)
over support.disaggregated = it * counts | when own_build
