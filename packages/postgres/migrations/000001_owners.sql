-- Owner rows, roles and who may connect.
-- why: a stage owns a partition number by the epoch of its row here; each of its writes begins by locking that row and comparing
--      the epoch, so that a former owner writes nothing and a take-over waits for the claim in flight.
-- locks: none on existing tables; the rows of pg_database and of five group roles.
-- old code: safe

-- Group roles without login, shared by all databases of the cluster; the logins of one database are members (ensureLogins).
-- Another database's migration may create them at this very moment.
do $$
declare
  role_name text;
begin
  foreach role_name in array array['weir_ingest', 'weir_dedup', 'weir_policy', 'weir_audit_sink', 'weir_audit_reader'] loop
    if not exists (select from pg_roles where rolname = role_name) then
      begin
        execute format('create role %I nologin', role_name);
      exception when duplicate_object or unique_violation then
        null; -- made by another database's migration
      end;
    end if;
  end loop;
  execute format('revoke connect, temporary, create on database %I from public', current_database());
end
$$;

revoke create on schema public from public;
grant usage on schema weir to weir_ingest, weir_dedup, weir_policy, weir_audit_sink, weir_audit_reader;
grant select on weir.migration to weir_ingest, weir_dedup, weir_policy, weir_audit_sink, weir_audit_reader;

create table weir.owner (
  stage text not null,
  partition int not null check (partition >= 0),
  epoch bigint not null check (epoch > 0),
  primary key (stage, partition)
);
comment on table weir.owner is 'One row per stage and partition number: whoever holds the current epoch may write.';

create table weir.owner_position (
  stage text not null,
  partition int not null,
  topic text not null,
  log_id uuid not null,
  emitted_below bigint not null check (emitted_below >= 0),
  claimed_at_ms bigint not null check (claimed_at_ms >= 0),
  primary key (stage, partition, topic, log_id),
  foreign key (stage, partition) references weir.owner (stage, partition)
);
comment on table weir.owner_position is
  'How far an owner has come in each input log: everything below emitted_below is claimed and emitted.';
comment on column weir.owner_position.claimed_at_ms is
  'Log-append time of the last record claimed, milliseconds since 1970.';

-- Makes the caller the owner.
--   in_stage, in_partition: what to own
-- Returns one row per input log with the new epoch, or a single row with a null topic when there is no position yet.
-- Waits (up to lock_timeout) for a claim in flight; what that claim stored is in the answer.
create function weir.take_over(in_stage text, in_partition int)
returns table (epoch bigint, topic text, log_id uuid, emitted_below bigint, claimed_at_ms bigint)
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  new_epoch bigint;
begin
  insert into weir.owner as o (stage, partition, epoch)
  values (in_stage, in_partition, 1)
  on conflict (stage, partition) do update set epoch = o.epoch + 1
  returning o.epoch into new_epoch;

  return query
  select new_epoch, p.topic, p.log_id, p.emitted_below, p.claimed_at_ms
  from (select 1) as one
  left join weir.owner_position p on p.stage = in_stage and p.partition = in_partition
  order by p.topic, p.log_id;
end
$$;

-- Proves ownership and stores positions. Every claim function begins with: if not weir.own(...) then return <fenced>.
--   in_epoch: the caller's epoch
--   in_topics, in_log_ids, in_emitted_below, in_claimed_at_ms: positions known committed, parallel arrays
-- Returns false, with nothing written, when the epoch is no longer the caller's or the row is missing.
-- Keeps the owner row locked until the transaction ends. Positions only move forward.
create function weir.own(
  in_stage text,
  in_partition int,
  in_epoch bigint,
  in_topics text[],
  in_log_ids uuid[],
  in_emitted_below bigint[],
  in_claimed_at_ms bigint[]
) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  perform from weir.owner o
  where o.stage = in_stage and o.partition = in_partition and o.epoch = in_epoch
  for update;
  if not found then
    return false;
  end if;

  insert into weir.owner_position as p (stage, partition, topic, log_id, emitted_below, claimed_at_ms)
  select in_stage, in_partition, given.topic, given.log_id, max(given.emitted_below), max(given.claimed_at_ms)
  from unnest(in_topics, in_log_ids, in_emitted_below, in_claimed_at_ms)
    as given (topic, log_id, emitted_below, claimed_at_ms)
  group by given.topic, given.log_id
  on conflict (stage, partition, topic, log_id) do update
  set emitted_below = greatest(p.emitted_below, excluded.emitted_below),
      claimed_at_ms = greatest(p.claimed_at_ms, excluded.claimed_at_ms)
  where p.emitted_below < excluded.emitted_below or p.claimed_at_ms < excluded.claimed_at_ms;
  return true;
end
$$;

revoke execute on function weir.take_over(text, int) from public;
revoke execute on function weir.own(text, int, bigint, text[], uuid[], bigint[], bigint[]) from public;
grant select, insert, update on weir.owner, weir.owner_position to weir_dedup, weir_policy, weir_audit_sink;
grant execute on function weir.take_over(text, int) to weir_dedup, weir_policy, weir_audit_sink;
grant execute on function weir.own(text, int, bigint, text[], uuid[], bigint[], bigint[])
  to weir_dedup, weir_policy, weir_audit_sink;
