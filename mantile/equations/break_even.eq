# At which price of its accelerators a scenario costs as much per output token as another.

[break_even] Break-even | price per accelerator
tokens      Output tokens of an accelerator in an hour [token/h]
            = cost.output_tokens * seconds_per_hour / (serving.accelerators / accelerators_per_rank)
            ; of the paid hours; times USD per token it is the price at which a scenario breaks even
price       Price of an accelerator, mean [USD/h]
            = if_known(cost.usd_per_hour / (serving.accelerators / accelerators_per_rank), cost.usd_per_hour)
            ; of all accelerators there are; What-if has the price at which each scenario costs what A does
