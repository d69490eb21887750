if True:
    from .imported import import_plan as import_plan
    from .privacy_document import (
        LARGEST as LARGEST,
        Verified as Verified,
        privacy_json as privacy_json,
        verify as verify,
    )
    from .statement import (
        one_line as one_line,
        scope_statement as scope_statement,
        statement as statement,
    )
