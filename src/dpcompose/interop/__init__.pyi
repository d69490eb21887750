if True:
    from .imported import import_plan as import_plan
    from .markup import one_line as one_line
    from .privacy_document import (
        LARGEST as LARGEST,
        Verified as Verified,
        privacy_json as privacy_json,
        verify as verify,
    )
    from .statement import statement as statement
    from .training_history import TrainingHistory as TrainingHistory
