from .account import Account as Account
from .exposure import Exposure as Exposure, exposure as exposure, fix_budgets as fix_budgets
from .opening import (
    open_partition as open_partition,
    open_scope as open_scope,
    open_scopes as open_scopes,
    open_slots as open_slots,
    take_slot as take_slot,
)
from .tree import ExposureStatement as ExposureStatement, underpaid_charges as underpaid_charges

if True:
    from .account import (
        Quote as Quote,
        as_promise as as_promise,
        charge_in_epsilon as charge_in_epsilon,
        charge_in_percent as charge_in_percent,
        charge_together as charge_together,
        pure_alone as pure_alone,
        refusal_in_words as refusal_in_words,
    )
    from .opening import BudgetArguments as BudgetArguments
    from .scope import CHOSEN as CHOSEN, Schedule as Schedule
    from .target import (
        NumericLiteral as NumericLiteral,
        balance_in_epsilon as balance_in_epsilon,
        exact as exact,
        refuse_unknown as refuse_unknown,
        target_of as target_of,
        used as used,
    )
