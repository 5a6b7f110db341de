-- The audit store: every message of every topic, once, with its position; append-only.
-- why: rows, intervals, positions and leaf numbers are written in one transaction by one fenced writer, so the store is complete up to
--      its positions and never holds a message twice.
-- locks: none on existing tables.
-- old code: safe

create schema audit;
grant usage on schema audit to weir_audit_sink, weir_audit_reader;

create table audit.head (
  id int not null primary key default 1 check (id = 1),
  size bigint not null check (size >= 0),
  log_date date not null
);
comment on table audit.head is 'Number of leaves written and the date of the last: one row, locked by each landing.';
insert into audit.head (size, log_date) values (0, '1970-01-01');

create table audit.position (
  log_id uuid not null,
  partition int not null,
  topic text not null,
  first_offset bigint not null,
  next_offset bigint not null check (next_offset >= first_offset),
  messages bigint not null default 0,
  primary key (log_id, partition)
);
comment on table audit.position is 'How far each log has landed: everything from first_offset up to next_offset, without a gap.';

create table audit.landed_interval (
  log_id uuid not null,
  partition int not null,
  start_offset bigint not null,
  next_offset bigint not null check (next_offset > start_offset),
  messages int not null,
  first_leaf bigint not null,
  landed_at timestamptz not null default now(),
  primary key (log_id, partition, start_offset)
);
comment on table audit.landed_interval is
  'One landing of one partition: the offsets it covers (markers and aborted records included) and the messages found in them.';

create table audit.message (
  leaf_index bigint not null,
  log_date date not null,
  kind text not null,
  topic text not null,
  log_id uuid not null,
  partition int not null,
  "offset" bigint not null,
  timestamp_ms bigint not null,
  key bytea,
  value bytea,
  headers bytea not null,
  tenant text,
  source text,
  event_key bytea,
  event_key_text text,
  subject text,
  run text,
  root_event text,
  cause text,
  decision_id text,
  delivery_id text,
  agent text,
  verdict text,
  type text,
  attempt int,
  copies int,
  trace_id text,
  detail text,
  opaque text,
  primary key (leaf_index, log_date),
  unique (log_id, partition, "offset", log_date)
) partition by range (log_date);
comment on table audit.message is 'Every message as it is in Kafka, byte for byte, with the columns it can be found by.';
comment on column audit.message.leaf_index is 'Number in the log of this store: 0, 1, 2 … without a hole, given by the one writer.';
comment on column audit.message.log_date is 'UTC date of landing, never earlier than that of the leaf before.';
comment on column audit.message.headers is 'Header list: count, then name and value of each, all length-prefixed with 4 bytes.';
comment on column audit.message.opaque is 'Why the value could not be read; null when it could.';

create index message_event_key on audit.message (event_key, leaf_index) where event_key is not null;
create index message_event_key_text on audit.message (event_key_text) where event_key_text is not null;
create index message_delivery_id on audit.message (delivery_id) where delivery_id is not null;
create index message_decision_id on audit.message (decision_id) where decision_id is not null;
create index message_subject on audit.message (tenant, subject, leaf_index) where subject is not null;
create index message_run on audit.message (run, leaf_index) where run is not null;
create index message_root_event on audit.message (root_event) where root_event is not null;
create index message_timestamp on audit.message using brin (timestamp_ms);

create function audit.refuse_change() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'the audit store is append-only: % on %.% is refused', tg_op, tg_table_schema, tg_table_name
    using errcode = 'insufficient_privilege';
end
$$;

create trigger refuse_change before update or delete on audit.message for each row execute function audit.refuse_change();
create trigger refuse_truncate before truncate on audit.message for each statement execute function audit.refuse_change();
alter table audit.message enable always trigger refuse_change;
alter table audit.message enable always trigger refuse_truncate;
create trigger refuse_change before update or delete on audit.landed_interval
  for each row execute function audit.refuse_change();
create trigger refuse_truncate before truncate on audit.landed_interval
  for each statement execute function audit.refuse_change();
alter table audit.landed_interval enable always trigger refuse_change;
alter table audit.landed_interval enable always trigger refuse_truncate;

-- Makes the daily partitions from the date of the last leaf (or today, UTC) to days_ahead from today, guarded like their parent.
-- Returns how many days from today on there is a partition for. Runs with the owner's rights, so that the sink needs none on tables.
create function audit.ensure_partitions(days_ahead int) returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  today date := (now() at time zone 'UTC')::date;
  day date;
  name text;
begin
  if days_ahead not between 1 and 60 then
    raise exception 'days_ahead is %, not between 1 and 60', days_ahead using errcode = 'invalid_parameter_value';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('weir audit partitions', 0));
  for i in 0 .. days_ahead loop
    day := today + i;
    name := 'message_' || to_char(day, 'YYYYMMDD');
    if to_regclass('audit.' || name) is null then
      execute format('create table audit.%I partition of audit.message for values from (%L) to (%L)', name, day, day + 1);
      execute format(
        'create trigger refuse_truncate before truncate on audit.%I for each statement execute function audit.refuse_change()',
        name);
      execute format('alter table audit.%I enable always trigger refuse_change', name);
      execute format('alter table audit.%I enable always trigger refuse_truncate', name);
    end if;
  end loop;
  return (
    select count(*)::int from generate_series(0, days_ahead) as ahead
    where to_regclass('audit.message_' || to_char(today + ahead, 'YYYYMMDD')) is not null
  );
end
$$;

create view audit.messages with (security_barrier) as
  select leaf_index, log_date, kind, topic, log_id, partition, "offset", timestamp_ms, key, value, headers, tenant, source, event_key,
         event_key_text, subject, run, root_event, cause, decision_id, delivery_id, agent, verdict, type, attempt, copies, trace_id,
         detail, opaque
  from audit.message;
create view audit.coverage with (security_barrier) as
  select p.topic, p.log_id, p.partition, p.first_offset, p.next_offset, p.messages from audit.position p;

revoke execute on all functions in schema audit from public;
grant insert on audit.message, audit.landed_interval to weir_audit_sink;
grant select, update on audit.head to weir_audit_sink;
grant select, insert, update on audit.position to weir_audit_sink;
grant execute on function audit.ensure_partitions(int) to weir_audit_sink;
grant select on audit.messages, audit.coverage to weir_audit_reader;
