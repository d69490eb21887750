if True:
    from .binomial_tail import at_least as at_least
    from .digits import plain as plain, two_digits as two_digits, with_error as with_error
    from .elementary import (
        ULPS as ULPS,
        Complexes as Complexes,
        Reals as Reals,
        U as U,
        applied as applied,
        between as between,
        dots as dots,
        exp_minus_linear as exp_minus_linear,
        exp_or_inf as exp_or_inf,
        exponential_sums as exponential_sums,
        log_add_exp as log_add_exp,
        log_mixed as log_mixed,
        log_one_plus as log_one_plus,
        log_sum as log_sum,
        log_sum_exp as log_sum_exp,
        log_unmixed as log_unmixed,
        minus_log1p as minus_log1p,
        product as product,
        row_dots as row_dots,
        row_sums as row_sums,
        row_tops as row_tops,
        sine_minus_linear as sine_minus_linear,
    )
    from .roots import (
        bracketed_root as bracketed_root,
        halved as halved,
        increasing_root as increasing_root,
        largest as largest,
        minimum as minimum,
        parabolic_minimum as parabolic_minimum,
        walk as walk,
    )
