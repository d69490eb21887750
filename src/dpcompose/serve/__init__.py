"""The custodian's service: a ledger behind identities, with prices that are the server's, and pages that show it."""

from dpcompose.serve.client import RemoteAccount
from dpcompose.serve.identity import Identities, Identity
from dpcompose.serve.permission import PERMISSIONS, Permission, Role
from dpcompose.serve.service import Service

__all__ = ["PERMISSIONS", "Identities", "Identity", "Permission", "RemoteAccount", "Role", "Service"]
