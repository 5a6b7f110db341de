-- Made from the migrations; compared in the check. Do not edit.

-- schemas
schema weir

-- tables and their columns
table weir.migration
  version integer not null
  name text not null
  sha256 text not null
  safe_for_old_code boolean not null
  applied_at timestamp with time zone not null default now()
table weir.owner
  stage text not null
  partition integer not null
  epoch bigint not null
table weir.owner_position
  stage text not null
  partition integer not null
  topic text not null
  log_id uuid not null
  emitted_below bigint not null
  claimed_at_ms bigint not null

-- constraints
weir.migration constraint migration_pkey PRIMARY KEY (version)
weir.owner constraint owner_epoch_check CHECK ((epoch > 0))
weir.owner constraint owner_partition_check CHECK ((partition >= 0))
weir.owner constraint owner_pkey PRIMARY KEY (stage, partition)
weir.owner_position constraint owner_position_claimed_at_ms_check CHECK ((claimed_at_ms >= 0))
weir.owner_position constraint owner_position_emitted_below_check CHECK ((emitted_below >= 0))
weir.owner_position constraint owner_position_pkey PRIMARY KEY (stage, partition, topic, log_id)
weir.owner_position constraint owner_position_stage_partition_fkey FOREIGN KEY (stage, partition) REFERENCES weir.owner(stage, partition)

-- functions
CREATE OR REPLACE FUNCTION weir.own(in_stage text, in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[])
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$;
CREATE OR REPLACE FUNCTION weir.take_over(in_stage text, in_partition integer)
 RETURNS TABLE(epoch bigint, topic text, log_id uuid, emitted_below bigint, claimed_at_ms bigint)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$;

-- grants on schemas
grant usage on schema weir to weir_audit_reader;
grant usage on schema weir to weir_audit_sink;
grant usage on schema weir to weir_dedup;
grant usage on schema weir to weir_ingest;
grant usage on schema weir to weir_policy;

-- grants on tables, views and sequences
grant insert, select, update on table weir.owner to weir_audit_sink;
grant insert, select, update on table weir.owner to weir_dedup;
grant insert, select, update on table weir.owner to weir_policy;
grant insert, select, update on table weir.owner_position to weir_audit_sink;
grant insert, select, update on table weir.owner_position to weir_dedup;
grant insert, select, update on table weir.owner_position to weir_policy;
grant select on table weir.migration to weir_audit_reader;
grant select on table weir.migration to weir_audit_sink;
grant select on table weir.migration to weir_dedup;
grant select on table weir.migration to weir_ingest;
grant select on table weir.migration to weir_policy;

-- grants on functions
grant execute on function weir.own(in_stage text, in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[]) to weir_audit_sink;
grant execute on function weir.own(in_stage text, in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[]) to weir_dedup;
grant execute on function weir.own(in_stage text, in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[]) to weir_policy;
grant execute on function weir.take_over(in_stage text, in_partition integer) to weir_audit_sink;
grant execute on function weir.take_over(in_stage text, in_partition integer) to weir_dedup;
grant execute on function weir.take_over(in_stage text, in_partition integer) to weir_policy;
