from .alert import Alerts as Alerts
from .client import RemoteAccount as RemoteAccount
from .demo import demo_service as demo_service
from .identity import Identities as Identities, Identity as Identity
from .issuer import Issuer as Issuer
from .listening import run as run
from .permission import PERMISSIONS as PERMISSIONS, Permission as Permission, Role as Role
from .published import Published as Published
from .service import Service as Service
from .web import application as application
