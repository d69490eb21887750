"""The tables of the service, as SQLite and PostgreSQL both read them; amounts are texts, as in the ledger."""

TABLES = (
    """create table if not exists service_time (id integer primary key, latest double precision not null)""",
    """create table if not exists service_token (
    digest text primary key, name text not null, role text not null, subtree text not null,
    expires double precision not null, revoked integer not null default 0)""",
    """create table if not exists service_issued (digest text primary key, issued double precision not null)""",
    """create table if not exists service_reservation (
    id text primary key, root text not null, scope text not null, actor text not null, asked text not null,
    held text not null, used text not null, expires double precision not null, ended integer not null default 0)""",
    """create table if not exists service_quota (
    scope text not null, actor text not null, root text not null, period text not null, caps text not null,
    keeper text not null, primary key (scope, actor))""",
    """create table if not exists service_quota_used (
    scope text not null, quota text not null, actor text not null, period text not null, used text not null,
    primary key (scope, quota, actor, period))""",
    """create table if not exists service_threshold (
    scope text primary key, root text not null, amounts text not null, keeper text not null)""",
    """create table if not exists service_request (
    id text primary key, root text not null, scope text not null, actor text not null, name text not null,
    asked text not null, cost text not null, reason text not null, made double precision not null,
    state text not null, decided_by text not null default '', expires double precision not null)""",
    """create table if not exists service_progress (root text primary key, sequence bigint not null)""",
    """create table if not exists service_alert (
    id text primary key, body text not null, due double precision not null, tries integer not null,
    told integer not null)""",
    """create table if not exists service_alert_progress (root text primary key, sequence bigint not null)""",
    """create index if not exists service_reservation_of_tree on service_reservation (root, ended)""",
    """create index if not exists service_request_of_tree on service_request (root, state)""",
)
