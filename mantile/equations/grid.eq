# What output tokens cost at other utilisations and other prices. A utilisation changes the tokens of a paid
# hour, and where accelerators are owned their electricity.

for p in 20; 40; 60; 80; 100
again grid.used{p} | , {p} % used | inputs.utilisation = grid.used{p}

[grid] Utilisations | shares of the paid hours
for p | share in 20 | 0.2; 40 | 0.4; 60 | 0.6; 80 | 0.8; 100 | 1
used{p}     Utilisation, {p} % [1] := {share} ; of the paid hours

for p in 20; 40; 60; 80; 100
[grid] At {p} % utilisation | again grid.used{p}

[grid] Utilisation and price | USD per million output tokens; as a table on What-if
price_step  Step of the price [1] := 0.2 ; by which prices are lower and higher
for p in 20; 40; 60; 80; 100
same.{p}    At {p} % utilisation, price as it is (that at {p} %) [USD/Mtoken]
            = where(all(checks.payable > 0, is_number(grid.used{p}.cost.usd_per_hour)),
            grid.used{p}.cost.usd_per_hour / (grid.used{p}.cost.output_tokens * seconds_per_hour) *
            tokens_per_million, 'not known') ; per million output tokens
lower.{p}   At {p} % utilisation, price −20 % [USD/Mtoken] = if_known(same.{p} * (1 - price_step), same.{p})
higher.{p}  At {p} % utilisation, price +20 % [USD/Mtoken] = if_known(same.{p} * (1 + price_step), same.{p})
