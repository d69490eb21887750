from .budgets import budget_pictures as budget_pictures, burn_down as burn_down, icicle as icicle
from .gallery import (
    accuracy as accuracy,
    plane as plane,
    privacy_profile as privacy_profile,
    steps as steps,
    trade_off as trade_off,
    waterfall as waterfall,
)
from .html import html as html
from .layout import (
    Heading as Heading,
    Page as Page,
    PageTable as PageTable,
    csv_text as csv_text,
    headings as headings,
)
from .subject import document as document, page as page, pictures as pictures, save as save

if True:
    from .html import fragment as fragment
    from .ledger import (
        at_least as at_least,
        at_most as at_most,
        left_of as left_of,
        log_page as log_page,
        price_page as price_page,
        tree_page as tree_page,
    )
    from .number import (
        above as above,
        below as below,
        exactly as exactly,
        members as members,
        trimmed as trimmed,
    )
    from .picture import Picture as Picture, require_pictures as require_pictures, write as write
    from .schemas import DOCUMENTS as DOCUMENTS, schema as schema
    from .subject import card_html as card_html, card_text as card_text
    from .text import text as text
