from .client import RemoteAccount as RemoteAccount
from .gate import PERMISSIONS as PERMISSIONS
from .identity import (
    Identities as Identities,
    Identity as Identity,
    Permission as Permission,
    Role as Role,
)
from .remote import RemoteSession as RemoteSession
from .service import Published as Published, Service as Service

if True:
    from .agreement import take_over as take_over
    from .counter import Counter as Counter
    from .demo import demo_service as demo_service
    from .issuer import Issuer as Issuer
    from .listening import require_only as require_only, run as run
    from .web import application as application
