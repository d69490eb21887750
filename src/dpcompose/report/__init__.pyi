from .account import (
    account_document as account_document,
    account_page as account_page,
    calibration_document as calibration_document,
    calibration_page as calibration_page,
    comparison_document as comparison_document,
    comparison_page as comparison_page,
)
from .advice import advice_document as advice_document, advice_page as advice_page
from .budgets import budget_svgs as budget_svgs, burn_down as burn_down, icicle as icicle
from .counting import counting_page as counting_page, save_counting as save_counting
from .gallery import (
    accuracy as accuracy,
    plane as plane,
    privacy_profile as privacy_profile,
    steps as steps,
    trade_off as trade_off,
    waterfall as waterfall,
)
from .html import html as html
from .page import (
    Fact as Fact,
    Heading as Heading,
    Page as Page,
    PageTable as PageTable,
    csv_text as csv_text,
)
from .release import (
    quote_document as quote_document,
    quote_page as quote_page,
    release_document as release_document,
    release_page as release_page,
)
from .training import save_training as save_training

if True:
    from .audit import audit_document as audit_document, audit_page as audit_page
    from .audit_picture import audit_svgs as audit_svgs, save_audit as save_audit
    from .document import bound_document as bound_document
    from .experiment import (
        experiment_document as experiment_document,
        experiment_page as experiment_page,
        save_experiment as save_experiment,
    )
    from .exposure import exposure_document as exposure_document, exposure_page as exposure_page
    from .ledger import (
        at_least as at_least,
        at_most as at_most,
        balance_document as balance_document,
        deployments_document as deployments_document,
        entry_document as entry_document,
        left_of as left_of,
        log_page as log_page,
        main_currency as main_currency,
        price_page as price_page,
        receipt_document as receipt_document,
        receipt_page as receipt_page,
        tree_page as tree_page,
        used_of as used_of,
        verification_page as verification_page,
    )
    from .number import above as above, below as below, exactly as exactly, trimmed as trimmed
    from .picture import (
        account_svgs as account_svgs,
        require_pictures as require_pictures,
        save_account as save_account,
    )
    from .schemas import DOCUMENTS as DOCUMENTS, schema as schema
    from .theorem import (
        evaluation_document as evaluation_document,
        evaluation_page as evaluation_page,
        listing_document as listing_document,
        listing_page as listing_page,
    )
