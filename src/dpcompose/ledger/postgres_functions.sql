-- Functions by which an analyst's role charges and redeems, and writes nothing else.
--
-- Each entry is checked here as `verify` does: its place in the chain, its time, its actor, every cap above it. A role
-- that may only call them cannot skip a rule, whatever program it uses. The actor is the role that logged in. Settings
-- of the session by which a text would be read otherwise are set for each function.

CREATE OR REPLACE FUNCTION ledger_string(value text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT
SET search_path = @schema@ SET standard_conforming_strings = on SET extra_float_digits = 1 AS $$
DECLARE
  plain text := to_json(value)::text;
  made text := '';
  letter text;
  code integer;
BEGIN
  IF plain ~ '^[ -~]*$' THEN RETURN plain; END IF;
  FOREACH letter IN ARRAY regexp_split_to_array(plain, '') LOOP
    code := ascii(letter);
    IF code > 65535 THEN
      made := made || '\u' || to_hex(55296 + ((code - 65536) >> 10)) || '\u' || to_hex(56320 + ((code - 65536) & 1023));
    ELSIF code > 126 THEN
      made := made || '\u' || lpad(to_hex(code), 4, '0');
    ELSE
      made := made || letter;
    END IF;
  END LOOP;
  RETURN made;
END $$;

CREATE OR REPLACE FUNCTION ledger_number(value text) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = @schema@ SET standard_conforming_strings = on SET extra_float_digits = 1 AS $$
DECLARE
  size float8;
BEGIN
  IF value ~ '^(0|-?[1-9][0-9]*)$' AND length(value) <= 301 THEN RETURN value; END IF;
  size := abs(value::float8);
  IF value::numeric <> (value::float8)::text::numeric THEN
    RAISE 'ledger: a number is not written as entries are';
  END IF;
  IF size = 0 OR (size >= 1e-4 AND size < 1e16) THEN
    IF value ~ '^-?(0|[1-9][0-9]*)\.(0|[0-9]*[1-9])$' THEN RETURN value; END IF;
  ELSIF value ~ '^-?[1-9](\.[0-9]*[1-9])?e(-(0[1-9]|[1-9][0-9]{1,2})|\+[1-9][0-9]{1,2})$' THEN
    RETURN value;
  END IF;
  RAISE 'ledger: a number is not written as entries are';
END $$;

CREATE OR REPLACE FUNCTION ledger_text(value json, levels integer DEFAULT @levels@) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT
SET search_path = @schema@ SET standard_conforming_strings = on SET extra_float_digits = 1 AS $$
DECLARE
  made text;
BEGIN
  IF levels < 0 THEN RAISE 'ledger: too many levels'; END IF;
  CASE json_typeof(value)
  WHEN 'object' THEN
    IF (SELECT count(*) <> count(DISTINCT key) FROM json_each(value)) THEN
      RAISE 'ledger: a name is there twice';
    END IF;
    SELECT string_agg(ledger_string(key) || ':' || ledger_text(each.value, levels - 1), ',' ORDER BY key COLLATE "C")
      INTO made FROM json_each(value) AS each;
    made := '{' || coalesce(made, '') || '}';
  WHEN 'array' THEN
    SELECT '[' || coalesce(string_agg(ledger_text(each.value, levels - 1), ',' ORDER BY place), '') || ']' INTO made
      FROM json_array_elements(value) WITH ORDINALITY AS each(value, place);
  WHEN 'string' THEN made := ledger_string(value #>> '{}');
  WHEN 'number' THEN made := ledger_number(value #>> '{}');
  ELSE made := value #>> '{}'; made := coalesce(made, 'null');
  END CASE;
  RETURN made;
END $$;

CREATE OR REPLACE FUNCTION ledger_amount(value text) RETURNS numeric LANGUAGE plpgsql IMMUTABLE
SET search_path = @schema@ SET standard_conforming_strings = on SET extra_float_digits = 1 AS $$
BEGIN
  IF value IS NULL OR value !~ '^(0|[1-9][0-9]{0,39})(\.[0-9]{0,39}[1-9])?$' THEN
    RAISE 'ledger: an amount is not written as entries are';
  END IF;
  RETURN value::numeric;
END $$;

CREATE OR REPLACE FUNCTION ledger_period(renew text, moment timestamp) RETURNS bigint LANGUAGE plpgsql IMMUTABLE
SET search_path = @schema@ SET standard_conforming_strings = on SET extra_float_digits = 1 AS $$
DECLARE
  months bigint := CASE renew WHEN 'year' THEN 12 WHEN 'quarter' THEN 3 WHEN 'month' THEN 1 END;
  seconds bigint := CASE renew WHEN 'week' THEN 604800 WHEN 'day' THEN 86400 END;
  length bigint := substring(renew FROM '^PT?([0-9]+)[YMDS]$');
BEGIN
  months := coalesce(months, CASE WHEN renew ~ '^P[0-9]+Y$' THEN 12 * length WHEN renew ~ '^P[0-9]+M$' THEN length END);
  IF months IS NOT NULL THEN
    RETURN (extract(year FROM moment)::bigint * 12 + extract(month FROM moment)::bigint - 1) / months;
  END IF;
  seconds := coalesce(seconds,
    CASE WHEN renew ~ '^P[0-9]+D$' THEN 86400 * length WHEN renew ~ '^PT[0-9]+S$' THEN length END);
  IF seconds IS NULL THEN RAISE 'ledger: a renewal that these functions do not know'; END IF;
  RETURN floor(extract(epoch FROM date_trunc('second', moment) - timestamp '1969-12-29') / seconds);
END $$;

CREATE OR REPLACE FUNCTION ledger_may(place text) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = @schema@ SET standard_conforming_strings = on SET extra_float_digits = 1 AS $$
  SELECT EXISTS (SELECT FROM ledger_right r WHERE r.role = session_user AND starts_with(place || '/', r.path || '/'))
$$;

CREATE OR REPLACE FUNCTION ledger_lock(top text) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = @schema@ SET standard_conforming_strings = on SET extra_float_digits = 1 AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM ledger_right r WHERE r.role = session_user AND split_part(r.path, '/', 1) = top) THEN
    RETURN NULL;
  END IF;
  RETURN (SELECT 1 FROM balance WHERE root = top AND path = top FOR UPDATE);
END $$;

CREATE OR REPLACE FUNCTION ledger_balance(spent jsonb) RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = @schema@ SET standard_conforming_strings = on SET extra_float_digits = 1 AS $$
  SELECT '{' || coalesce(string_agg(
    ledger_string(key) || ':"' || trim_scale(value::text::numeric) || '"', ',' ORDER BY key COLLATE "C"), '') || '}'
  FROM jsonb_each(spent)
$$;

CREATE OR REPLACE FUNCTION ledger_charge(fields json, moment timestamp) RETURNS void LANGUAGE plpgsql
SET search_path = @schema@ SET standard_conforming_strings = on SET extra_float_digits = 1 AS $$
DECLARE
  place text := fields ->> 'scope';
  node record;
  budget json;
  rising jsonb := '{}';
  child jsonb;
  before jsonb;
  after jsonb;
  passed boolean := false;
  name text;
  number bigint;
  levels integer := 0;
  short jsonb;
  changes jsonb[] := '{}';
BEGIN
  SELECT coalesce(jsonb_object_agg(key, ledger_amount(value)), '{}') INTO rising
    FROM json_each_text(fields -> 'cost');
  FOR node IN
    SELECT s.path, s.kind, s.caps::json AS caps, s.description::json AS description,
      b.spent::json AS spent, b.taken, b.closed
    FROM scope s JOIN balance b ON b.root = s.root AND b.path = s.path
    WHERE s.root = split_part(place, '/', 1) AND starts_with(place || '/', s.path || '/') ORDER BY length(s.path) DESC
  LOOP
    levels := levels + 1;
    IF node.closed <> 0 THEN RAISE 'ledger: the scope % is closed', node.path; END IF;
    budget := CASE json_typeof(node.description -> 'budget') WHEN 'object' THEN node.description -> 'budget' END;
    IF levels = 1 AND node.kind <> 'filter' THEN RAISE 'ledger: the scope % takes no charges', place; END IF;
    IF passed OR (node.kind = 'slots' AND levels > 1) THEN passed := true; CONTINUE; END IF;
    IF (levels = 1 AND coalesce(budget ->> 'schedule', '[]') <> '[]') OR budget ->> 'alternatives' IS NOT NULL THEN
      RAISE 'ledger: the scope % has a schedule or alternatives, which only its keeper charges', node.path;
    END IF;
    SELECT coalesce(jsonb_object_agg(key, value::numeric), '{}') INTO before FROM json_each_text(node.spent);
    number := node.taken;
    IF budget ->> 'renew' IS NOT NULL AND ledger_period(budget ->> 'renew', moment) > number THEN
      number := ledger_period(budget ->> 'renew', moment);
      SELECT coalesce(jsonb_object_agg(key, 0), '{}') INTO before FROM jsonb_each(before);
    END IF;
    IF levels = 1 AND NOT (before ?& ARRAY(SELECT jsonb_object_keys(rising))
      AND rising ?& ARRAY(SELECT jsonb_object_keys(before)))
    THEN
      RAISE 'ledger: the currencies are not those of the scope %', place;
    END IF;
    IF node.kind = 'partition' THEN
      SELECT coalesce(jsonb_object_agg(key, greatest(value::text::numeric, (child ->> key)::numeric)), '{}')
        INTO after FROM jsonb_each(before);
      SELECT coalesce(jsonb_object_agg(key, value::text::numeric - (before ->> key)::numeric), '{}') INTO rising
        FROM jsonb_each(after);
    ELSE
      SELECT coalesce(jsonb_object_agg(key, value::text::numeric + (rising ->> key)::numeric), '{}') INTO after
        FROM jsonb_each(before);
    END IF;
    FOR name IN SELECT key FROM json_each_text(node.caps) ORDER BY key COLLATE "C" LOOP
      IF (after ->> name)::numeric > (node.caps ->> name)::numeric THEN
        short := jsonb_build_object(
          'asked', trim_scale((after ->> name)::numeric - (before ->> name)::numeric)::text, 'currency', name,
          'left', trim_scale((node.caps ->> name)::numeric - (before ->> name)::numeric)::text, 'scope', node.path);
        EXIT;
      END IF;
    END LOOP;
    IF after <> before THEN
      changes := changes || jsonb_build_object('path', node.path, 'spent', after, 'taken', number);
    END IF;
    child := after;
  END LOOP;
  IF levels <> 1 + length(place) - length(replace(place, '/', '')) THEN
    RAISE 'ledger: there is no scope %', place;
  END IF;
  IF fields ->> 'kind' = 'refused' THEN
    IF short IS NULL OR short <> (fields -> 'short')::jsonb THEN
      RAISE 'ledger: the refusal is not what the rules decide';
    END IF;
    RETURN;
  END IF;
  IF short IS NOT NULL THEN RAISE 'ledger: the charge does not fit in %', short ->> 'scope'; END IF;
  UPDATE balance b SET taken = (each ->> 'taken')::bigint, spent = ledger_balance(each -> 'spent')
    FROM unnest(changes) AS each WHERE b.root = split_part(place, '/', 1) AND b.path = each ->> 'path';
END $$;

CREATE OR REPLACE FUNCTION ledger_append(body text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = @schema@ SET standard_conforming_strings = on SET extra_float_digits = 1 AS $$
DECLARE
  fields json;
  kind text;
  place text;
  top text;
  head record;
  moment timestamp;
  charged json;
  names text[];
  stamp text;
BEGIN
  IF body IS NULL OR octet_length(body) > @most@ OR body !~ '^[ -~]*$' THEN RAISE 'ledger: no entry'; END IF;
  fields := body::json;
  IF json_typeof(fields) <> 'object' OR ledger_text(fields) <> body
    OR json_typeof(fields -> 'scope') IS DISTINCT FROM 'string'
  THEN
    RAISE 'ledger: not written as entries are';
  END IF;
  kind := fields ->> 'kind';
  place := fields ->> 'scope';
  top := split_part(place, '/', 1);
  names := CASE kind
    WHEN 'granted' THEN '{actor,cost,description,key,kind,previous,scope,sequence,time,version}'
    WHEN 'refused' THEN '{actor,cost,description,key,kind,previous,scope,sequence,short,time,version}'
    WHEN 'redeemed' THEN '{actor,kind,previous,redeems,scope,sequence,time,version}'
    END;
  IF names IS NULL OR ARRAY(SELECT each FROM json_object_keys(fields) AS each
    WHERE NOT (kind = 'redeemed' AND each = 'attempt')) <> names
  THEN
    RAISE 'ledger: analysts charge and redeem, and write no other entries';
  END IF;
  IF NOT ledger_may(place) OR ledger_lock(top) IS NULL THEN
    RAISE 'ledger: % may not charge %', session_user, place;
  END IF;
  IF ledger_text(fields -> 'actor') <> ledger_string(session_user) THEN
    RAISE 'ledger: the actor is %', session_user;
  END IF;
  SELECT sequence, hash, entry.body::json ->> 'time' AS time INTO head
    FROM entry WHERE root = top ORDER BY sequence DESC LIMIT 1;
  IF ledger_text(fields -> 'sequence') <> (head.sequence + 1)::text OR ledger_text(fields -> 'version') <> '@version@'
    OR ledger_text(fields -> 'previous') <> '"' || head.hash || '"'
  THEN
    RAISE 'ledger: the entry does not follow the last one';
  END IF;
  stamp := ledger_text(fields -> 'time');
  IF stamp !~ '^"[0-9]{4}-[0-9-]{5}T[0-9:]{8}\.[0-9]{6}Z"$' THEN RAISE 'ledger: the entry has no time'; END IF;
  stamp := trim(stamp, '"');
  moment := rtrim(stamp, 'Z')::timestamp;
  IF to_char(moment, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') <> stamp OR stamp COLLATE "C" < head.time THEN
    RAISE 'ledger: the time of the entry is before that of the last one';
  END IF;
  IF stamp <> head.time AND moment > clock_timestamp() AT TIME ZONE 'UTC' + interval '@ahead@ seconds' THEN
    RAISE 'ledger: the clock of this client is ahead of the server''s';
  END IF;
  IF kind = 'redeemed' THEN
    IF ledger_text(fields -> 'redeems') !~ '^[1-9][0-9]{0,17}$'
      OR ledger_text(fields -> 'attempt') !~ '^"[0-9a-f]{64}"$'
    THEN
      RAISE 'ledger: no redemption';
    END IF;
    SELECT entry.body::json INTO charged FROM entry WHERE root = top AND sequence = (fields ->> 'redeems')::bigint;
    IF charged ->> 'kind' IS DISTINCT FROM 'granted' OR charged ->> 'scope' <> place
      OR charged ->> 'actor' <> session_user
    THEN
      RAISE 'ledger: it redeems what is no charge of its actor';
    END IF;
  ELSE
    IF json_typeof(fields -> 'cost') <> 'object' OR json_typeof(fields -> 'description') <> 'object'
      OR json_typeof(fields -> 'key') <> 'string' OR fields ->> 'key' ~ '[[:cntrl:]]'
      OR length(fields ->> 'key') NOT BETWEEN 1 AND 256
      OR EXISTS (SELECT FROM json_each(fields -> 'cost') AS each WHERE json_typeof(each.value) <> 'string')
    THEN RAISE 'ledger: no charge'; END IF;
    PERFORM ledger_charge(fields, moment);
  END IF;
  INSERT INTO entry (root, sequence, scope, key, redeems, body, hash) VALUES (
    top, head.sequence + 1, place, fields ->> 'key', (fields ->> 'redeems')::bigint, body,
    encode(sha256(convert_to(body, 'UTF8')), 'hex'));
END $$;
