-- Made from the migrations; compared in the check. Do not edit.

-- schemas
schema audit
schema dedup
schema edge
schema policy
schema weir

-- tables and their columns
table audit.head
  id integer not null default 1
  size bigint not null
  log_date date not null
table audit.landed_interval
  log_id uuid not null
  partition integer not null
  start_offset bigint not null
  next_offset bigint not null
  messages integer not null
  first_leaf bigint not null
  landed_at timestamp with time zone not null default now()
table audit.message partition by RANGE (log_date)
  leaf_index bigint not null
  log_date date not null
  kind text not null
  topic text not null
  log_id uuid not null
  partition integer not null
  "offset" bigint not null
  timestamp_ms bigint not null
  key bytea
  value bytea
  headers bytea not null
  tenant text
  source text
  event_key bytea
  event_key_text text
  subject text
  run text
  root_event text
  cause text
  decision_id text
  delivery_id text
  agent text
  verdict text
  type text
  attempt integer
  copies integer
  trace_id text
  detail text
  opaque text
table audit."position"
  log_id uuid not null
  partition integer not null
  topic text not null
  first_offset bigint not null
  next_offset bigint not null
  messages bigint not null default 0
table dedup.business_claim
  business_key bytea not null
  event_key bytea not null
  space text not null
  claimed_value text not null
table dedup.claim
  event_key bytea not null
  event_key_text text not null
  tenant text not null
  source text not null
  delivery_id uuid not null
  log_id uuid not null
  partition integer not null
  "offset" bigint not null
  payload_digest bytea not null
  appended_at_ms bigint not null
table edge.claim with (fillfactor=50)
  key_hash bytea not null
  delivery_id uuid not null
  digest bytea not null
  state text not null
  log_id uuid
  lease_until timestamp with time zone not null
  accepted_at timestamp with time zone
  keep_until timestamp with time zone not null
table policy.budget with (fillfactor=50)
  budget text not null
  window_start_ms bigint not null
  used bigint not null
table policy.charge
  charge_id uuid not null
  budget text not null
  window_start_ms bigint not null
  amount bigint not null
  attempt integer not null
  voided_at_ms bigint
table policy.delivery with (fillfactor=80)
  decision_id uuid not null
  agent text not null
  tenant text not null
  ordering_key text not null
  event_key bytea not null
  partition integer not null
  log_id uuid not null
  "offset" bigint not null
  event bytea
  attempt integer not null
  deliveries integer not null
  state text not null
  parked_code text
  max_attempts integer not null
  backoff_ms bigint not null
  deadline_ms bigint not null
  overdue_at_ms bigint not null
  overdue_produced_at_ms bigint
  ended_log_id uuid
  ended_offset bigint
table policy.outcome
  decision_id uuid not null
  attempt integer not null
  kind text not null
  log_id uuid not null
  partition integer not null
  "offset" bigint not null
  status text not null
  effects text not null
  result text not null
  code text not null
  not_before_ms bigint
  at_ms bigint not null
table policy.override
  decision_id uuid not null
  attempt integer not null
  code text not null
  detail text not null
table policy.verdict
  decision_id uuid not null
  attempt integer not null
  agent text not null
  agents jsonb not null
  log_id uuid not null
  partition integer not null
  "offset" bigint not null
  verdict text not null
  reasons jsonb not null
  charges jsonb not null
  not_before_ms bigint
  at_ms bigint not null
  config_version text not null
table policy.version with (fillfactor=80)
  agent text not null
  ordering_key text not null
  kind text not null
  version numeric not null
  partition integer not null
  decision_id uuid not null
  at_ms bigint not null
table policy.waiting
  decision_id uuid not null
  agent text not null
  ordering_key text not null
  tenant text not null
  partition integer not null
  log_id uuid not null
  "offset" bigint not null
  event bytea not null
  not_before_ms bigint
  rate_reserved boolean not null
  next_attempt integer not null
  released_attempt integer not null default 0
  released_at_ms bigint
  ended_attempt integer
  event_key bytea
  cause text not null default 'due'::text
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
audit.head constraint head_id_check CHECK ((id = 1))
audit.head constraint head_pkey PRIMARY KEY (id)
audit.head constraint head_size_check CHECK ((size >= 0))
audit.landed_interval constraint landed_interval_check CHECK ((next_offset > start_offset))
audit.landed_interval constraint landed_interval_pkey PRIMARY KEY (log_id, partition, start_offset)
audit.message constraint message_log_id_partition_offset_log_date_key UNIQUE (log_id, partition, "offset", log_date)
audit.message constraint message_pkey PRIMARY KEY (leaf_index, log_date)
audit."position" constraint position_check CHECK ((next_offset >= first_offset))
audit."position" constraint position_pkey PRIMARY KEY (log_id, partition)
dedup.business_claim constraint business_claim_business_key_check CHECK ((octet_length(business_key) = 32))
dedup.business_claim constraint business_claim_event_key_fkey FOREIGN KEY (event_key) REFERENCES dedup.claim(event_key)
dedup.business_claim constraint business_claim_pkey PRIMARY KEY (business_key)
dedup.claim constraint claim_event_key_check CHECK ((octet_length(event_key) = 32))
dedup.claim constraint claim_event_key_text_check CHECK ((octet_length(event_key_text) <= 1024))
dedup.claim constraint claim_pkey PRIMARY KEY (event_key)
edge.claim constraint claim_check CHECK (((state = 'accepted'::text) = ((log_id IS NOT NULL) AND (accepted_at IS NOT NULL))))
edge.claim constraint claim_digest_check CHECK ((octet_length(digest) = 32))
edge.claim constraint claim_key_hash_check CHECK ((octet_length(key_hash) = 32))
edge.claim constraint claim_pkey PRIMARY KEY (key_hash)
edge.claim constraint claim_state_check CHECK ((state = ANY (ARRAY['publishing'::text, 'accepted'::text])))
policy.budget constraint budget_pkey PRIMARY KEY (budget, window_start_ms)
policy.budget constraint budget_used_check CHECK ((used >= 0))
policy.charge constraint charge_amount_check CHECK ((amount > 0))
policy.charge constraint charge_pkey PRIMARY KEY (charge_id, budget)
policy.delivery constraint delivery_attempt_check CHECK ((attempt >= 0))
policy.delivery constraint delivery_backoff_ms_check CHECK ((backoff_ms >= 0))
policy.delivery constraint delivery_deadline_ms_check CHECK ((deadline_ms > 0))
policy.delivery constraint delivery_deliveries_check CHECK ((deliveries > 0))
policy.delivery constraint delivery_max_attempts_check CHECK ((max_attempts > 0))
policy.delivery constraint delivery_pkey PRIMARY KEY (decision_id)
policy.delivery constraint delivery_state_check CHECK ((state = ANY (ARRAY['in_progress'::text, 'waiting'::text, 'completed'::text, 'parked'::text, 'deny'::text, 'stale'::text])))
policy.outcome constraint outcome_attempt_check CHECK ((attempt >= 0))
policy.outcome constraint outcome_effects_check CHECK ((effects = ANY (ARRAY[''::text, 'none'::text, 'unknown'::text, 'done'::text])))
policy.outcome constraint outcome_kind_check CHECK ((kind = ANY (ARRAY['report'::text, 'deadline'::text])))
policy.outcome constraint outcome_pkey PRIMARY KEY (decision_id, attempt, kind)
policy.outcome constraint outcome_result_check CHECK ((result = ANY (ARRAY['completed'::text, 'again'::text, 'parked'::text, 'late'::text, 'moot'::text])))
policy.outcome constraint outcome_status_check CHECK ((status = ANY (ARRAY['completed'::text, 'failed'::text, 'no_report'::text])))
policy.override constraint override_decision_id_attempt_fkey FOREIGN KEY (decision_id, attempt) REFERENCES policy.verdict(decision_id, attempt)
policy.override constraint override_pkey PRIMARY KEY (decision_id, attempt)
policy.verdict constraint verdict_attempt_check CHECK ((attempt >= 0))
policy.verdict constraint verdict_pkey PRIMARY KEY (decision_id, attempt)
policy.verdict constraint verdict_verdict_check CHECK ((verdict = ANY (ARRAY['allow'::text, 'defer'::text, 'hold'::text, 'deny'::text, 'stale'::text, 'parked'::text, 'unrouted'::text])))
policy.version constraint version_kind_check CHECK ((kind = ANY (ARRAY['number'::text, 'time'::text])))
policy.version constraint version_pkey PRIMARY KEY (agent, ordering_key)
policy.waiting constraint waiting_cause_check CHECK ((cause = ANY (ARRAY['due'::text, 'again'::text])))
policy.waiting constraint waiting_next_attempt_check CHECK ((next_attempt > 0))
policy.waiting constraint waiting_pkey PRIMARY KEY (decision_id)
weir.migration constraint migration_pkey PRIMARY KEY (version)
weir.owner constraint owner_epoch_check CHECK ((epoch > 0))
weir.owner constraint owner_partition_check CHECK ((partition >= 0))
weir.owner constraint owner_pkey PRIMARY KEY (stage, partition)
weir.owner_position constraint owner_position_claimed_at_ms_check CHECK ((claimed_at_ms >= 0))
weir.owner_position constraint owner_position_emitted_below_check CHECK ((emitted_below >= 0))
weir.owner_position constraint owner_position_pkey PRIMARY KEY (stage, partition, topic, log_id)
weir.owner_position constraint owner_position_stage_partition_fkey FOREIGN KEY (stage, partition) REFERENCES weir.owner(stage, partition)

-- indexes without a constraint
CREATE INDEX claim_keep_until ON edge.claim USING btree (keep_until);
CREATE INDEX delivery_event ON policy.delivery USING btree (event_key) WHERE (state = ANY (ARRAY['in_progress'::text, 'waiting'::text]));
CREATE INDEX delivery_overdue ON policy.delivery USING btree (partition, overdue_at_ms) WHERE (state = 'in_progress'::text);
CREATE INDEX delivery_unsettled ON policy.delivery USING btree (partition) WHERE ((ended_log_id IS NOT NULL) AND (event IS NOT NULL));
CREATE INDEX message_cause ON ONLY audit.message USING btree (cause) WHERE (cause IS NOT NULL);
CREATE INDEX message_decision_id ON ONLY audit.message USING btree (decision_id) WHERE (decision_id IS NOT NULL);
CREATE INDEX message_delivery_id ON ONLY audit.message USING btree (delivery_id) WHERE (delivery_id IS NOT NULL);
CREATE INDEX message_event_key ON ONLY audit.message USING btree (event_key, leaf_index) WHERE (event_key IS NOT NULL);
CREATE INDEX message_event_key_text ON ONLY audit.message USING btree (event_key_text) WHERE (event_key_text IS NOT NULL);
CREATE INDEX message_loose_run ON ONLY audit.message USING btree (run, leaf_index) WHERE ((event_key IS NULL) AND (run IS NOT NULL));
CREATE INDEX message_loose_subject ON ONLY audit.message USING btree (subject, leaf_index) WHERE ((event_key IS NULL) AND (subject IS NOT NULL));
CREATE INDEX message_root_event ON ONLY audit.message USING btree (root_event) WHERE (root_event IS NOT NULL);
CREATE INDEX message_run ON ONLY audit.message USING btree (run, leaf_index) WHERE (run IS NOT NULL);
CREATE INDEX message_subject ON ONLY audit.message USING btree (tenant, subject, leaf_index) WHERE (subject IS NOT NULL);
CREATE INDEX message_timestamp ON ONLY audit.message USING brin (timestamp_ms);
CREATE INDEX outcome_coordinate ON policy.outcome USING btree (log_id, partition, "offset");
CREATE INDEX verdict_coordinate ON policy.verdict USING btree (log_id, partition, "offset");
CREATE INDEX version_age ON policy.version USING btree (partition, at_ms);
CREATE INDEX waiting_event ON policy.waiting USING btree (event_key);
CREATE INDEX waiting_order ON policy.waiting USING btree (partition, agent, ordering_key, "offset");

-- views
view audit.coverage as
 SELECT topic,
    log_id,
    partition,
    first_offset,
    next_offset,
    messages
   FROM audit."position" p;
view audit.messages as
 SELECT leaf_index,
    log_date,
    kind,
    topic,
    log_id,
    partition,
    "offset",
    timestamp_ms,
    key,
    value,
    headers,
    tenant,
    source,
    event_key,
    event_key_text,
    subject,
    run,
    root_event,
    cause,
    decision_id,
    delivery_id,
    agent,
    verdict,
    type,
    attempt,
    copies,
    trace_id,
    detail,
    opaque
   FROM audit.message;

-- functions
CREATE OR REPLACE FUNCTION audit.ensure_partitions(days_ahead integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$;
CREATE OR REPLACE FUNCTION audit.headers(packed bytea)
 RETURNS TABLE(ordinal integer, name text, value bytea)
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  at int := 1;
  part bytea;
  size bigint;
  parts bytea[] := '{}';
begin
  while at <= length(packed) loop
    size := (get_byte(packed, at - 1)::bigint << 24) + (get_byte(packed, at) << 16) + (get_byte(packed, at + 1) << 8)
      + get_byte(packed, at + 2);
    part := substring(packed from at + 4 for size::int);
    parts := parts || part;
    at := at + 4 + size::int;
  end loop;
  -- The first part is the count.
  for i in 1 .. (coalesce(cardinality(parts), 0) - 1) / 2 loop
    ordinal := i;
    value := parts[2 * i + 1];
    begin
      name := convert_from(parts[2 * i], 'UTF8');
    exception when character_not_in_repertoire or untranslatable_character then
      name := encode(parts[2 * i], 'escape');
    end;
    return next;
  end loop;
end
$function$;
CREATE OR REPLACE FUNCTION audit.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  raise exception 'the audit store is append-only: % on %.% is refused', tg_op, tg_table_schema, tg_table_name
    using errcode = 'insufficient_privilege';
end
$function$;
CREATE OR REPLACE FUNCTION dedup.claim(in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[], in_log_id uuid, in_offsets bigint[], in_event_keys bytea[], in_event_key_texts text[], in_tenants text[], in_sources text[], in_delivery_ids uuid[], in_payload_digests bytea[], in_appended_at_ms bigint[], in_business_keys bytea[], in_spaces text[], in_values text[])
 RETURNS TABLE(mine boolean, entry integer, inserted boolean, delivery_id uuid, log_id uuid, partition integer, "offset" bigint, payload_digest bytea, known_emitted boolean, business_event_key bytea, business_delivery_id uuid, business_log_id uuid, business_partition integer, business_offset bigint)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  won bytea[];
begin
  if not weir.own('dedup', in_partition, in_epoch, in_topics, in_log_ids, in_emitted_below, in_claimed_at_ms) then
    return query select false, null::int, null::boolean, null::uuid, null::uuid, null::int, null::bigint, null::bytea,
      null::boolean, null::bytea, null::uuid, null::uuid, null::int, null::bigint;
    return;
  end if;

  with inserted as (
    insert into dedup.claim as c
      (event_key, event_key_text, tenant, source, delivery_id, log_id, partition, "offset", payload_digest, appended_at_ms)
    select g.event_key, g.event_key_text, g.tenant, g.source, g.delivery_id, in_log_id, in_partition, g.at_offset,
           g.payload_digest, g.appended_at_ms
    from unnest(in_event_keys, in_event_key_texts, in_tenants, in_sources, in_delivery_ids, in_offsets, in_payload_digests,
                in_appended_at_ms)
      as g (event_key, event_key_text, tenant, source, delivery_id, at_offset, payload_digest, appended_at_ms)
    order by g.event_key
    on conflict (event_key) do nothing
    returning c.event_key
  )
  select coalesce(array_agg(i.event_key), '{}') into won from inserted i;

  -- Only records that won their event key, in this call or in an earlier one for the same record, may take a business key.
  insert into dedup.business_claim (business_key, event_key, space, claimed_value)
  select g.business_key, g.event_key, g.space, g.claimed_value
  from unnest(in_event_keys, in_delivery_ids, in_offsets, in_business_keys, in_spaces, in_values)
    as g (event_key, delivery_id, at_offset, business_key, space, claimed_value)
  join dedup.claim c on c.event_key = g.event_key
  where g.business_key is not null
    and c.log_id = in_log_id and c.partition = in_partition and c."offset" = g.at_offset and c.delivery_id = g.delivery_id
  order by g.business_key, g.at_offset
  on conflict (business_key) do nothing;

  return query
  select true, g.entry::int, g.event_key = any (won), c.delivery_id, c.log_id, c.partition, c."offset", c.payload_digest,
         exists (
           select from weir.owner_position p
           where p.stage = 'dedup' and p.log_id = c.log_id and p.partition = c.partition and p.emitted_below > c."offset"
         ),
         b.event_key, h.delivery_id, h.log_id, h.partition, h."offset"
  from unnest(in_event_keys, in_business_keys) with ordinality as g (event_key, business_key, entry)
  left join dedup.claim c on c.event_key = g.event_key
  left join dedup.business_claim b on b.business_key = g.business_key
  left join dedup.claim h on h.event_key = b.event_key
  order by g.entry;
end
$function$;
CREATE OR REPLACE FUNCTION dedup.restore(in_partition integer, in_epoch bigint, in_event_keys bytea[], in_event_key_texts text[], in_tenants text[], in_sources text[], in_delivery_ids uuid[], in_log_ids uuid[], in_offsets bigint[], in_payload_digests bytea[], in_appended_at_ms bigint[], in_business_keys bytea[], in_spaces text[], in_values text[])
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  missing int;
begin
  if not weir.own('dedup', in_partition, in_epoch, '{}', '{}', '{}', '{}') then
    return -1;
  end if;
  with inserted as (
    insert into dedup.claim
      (event_key, event_key_text, tenant, source, delivery_id, log_id, partition, "offset", payload_digest, appended_at_ms)
    select g.event_key, g.event_key_text, g.tenant, g.source, g.delivery_id, g.log_id, in_partition, g.at_offset,
           g.payload_digest, g.appended_at_ms
    from unnest(in_event_keys, in_event_key_texts, in_tenants, in_sources, in_delivery_ids, in_log_ids, in_offsets,
                in_payload_digests, in_appended_at_ms)
      as g (event_key, event_key_text, tenant, source, delivery_id, log_id, at_offset, payload_digest, appended_at_ms)
    order by g.event_key
    on conflict (event_key) do nothing
    returning 1
  )
  select count(*)::int into missing from inserted;
  insert into dedup.business_claim (business_key, event_key, space, claimed_value)
  select g.business_key, g.event_key, g.space, g.claimed_value
  from unnest(in_event_keys, in_business_keys, in_spaces, in_values) as g (event_key, business_key, space, claimed_value)
  where g.business_key is not null
  order by g.business_key
  on conflict (business_key) do nothing;
  return missing;
end
$function$;
CREATE OR REPLACE FUNCTION edge.accept(in_keys bytea[], in_delivery_ids uuid[], in_digests bytea[], in_log_id uuid)
 RETURNS TABLE(key_hash bytea, outcome text, delivery_id uuid, digest bytea)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  won bytea[];
begin
  perform from edge.claim c where c.key_hash = any (in_keys) order by c.key_hash for update;

  with changed as (
    update edge.claim c
    set state = 'accepted', log_id = in_log_id, accepted_at = clock_timestamp(), digest = g.digest
    from unnest(in_keys, in_delivery_ids, in_digests) as g (key_hash, delivery_id, digest)
    where c.key_hash = g.key_hash
      and c.delivery_id = g.delivery_id
      and (c.state = 'publishing' or c.log_id <> in_log_id)
    returning c.key_hash
  )
  select array_agg(t.key_hash) into won from changed t;

  return query
  select g.key_hash,
         case when g.key_hash = any (won) then 'mine' else coalesce(c.state, 'absent') end,
         c.delivery_id,
         c.digest
  from unnest(in_keys) as g (key_hash)
  left join edge.claim c on c.key_hash = g.key_hash;
end
$function$;
CREATE OR REPLACE FUNCTION edge.claim(in_keys bytea[], in_delivery_ids uuid[], in_digests bytea[], in_keep_ms bigint[], in_log_id uuid, in_lease_ms integer)
 RETURNS TABLE(key_hash bytea, outcome text, delivery_id uuid, digest bytea, lease_left_ms integer)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  lease constant interval := in_lease_ms * interval '1 millisecond';
  won bytea[];
begin
  with taken as (
    insert into edge.claim as c (key_hash, delivery_id, digest, state, lease_until, keep_until)
    select g.key_hash, g.delivery_id, g.digest, 'publishing', clock_timestamp() + lease,
           clock_timestamp() + g.keep_ms * interval '1 millisecond'
    from unnest(in_keys, in_delivery_ids, in_digests, in_keep_ms) as g (key_hash, delivery_id, digest, keep_ms)
    order by g.key_hash
    on conflict (key_hash) do update
    set delivery_id = case when c.state = 'publishing' and c.keep_until > clock_timestamp()
                           then c.delivery_id else excluded.delivery_id end,
        keep_until = case when c.state = 'publishing' and c.keep_until > clock_timestamp()
                          then c.keep_until else excluded.keep_until end,
        digest = excluded.digest,
        state = 'publishing',
        log_id = null,
        accepted_at = null,
        lease_until = clock_timestamp() + lease
    where (c.state = 'publishing' and c.lease_until <= clock_timestamp())
       or (c.state = 'accepted' and (c.log_id <> in_log_id or c.keep_until <= clock_timestamp()))
    returning c.key_hash
  )
  select array_agg(t.key_hash) into won from taken t;

  return query
  select c.key_hash,
         case when c.key_hash = any (won) then 'mine' else c.state end,
         c.delivery_id,
         c.digest,
         greatest(0, ceil(extract(epoch from c.lease_until - clock_timestamp()) * 1000))::int
  from edge.claim c
  where c.key_hash = any (in_keys);
end
$function$;
CREATE OR REPLACE FUNCTION edge.expire(in_limit integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  deleted int;
begin
  with ended as materialized (
    select e.key_hash
    from edge.claim e
    where e.keep_until <= clock_timestamp() and e.lease_until <= clock_timestamp()
    order by e.keep_until
    limit in_limit
    for update skip locked
  )
  delete from edge.claim c using ended where c.key_hash = ended.key_hash;
  get diagnostics deleted = row_count;
  return deleted;
end
$function$;
CREATE OR REPLACE FUNCTION edge.release(in_keys bytea[], in_delivery_ids uuid[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
begin
  perform from edge.claim c where c.key_hash = any (in_keys) order by c.key_hash for update;
  update edge.claim c
  set lease_until = clock_timestamp()
  from unnest(in_keys, in_delivery_ids) as g (key_hash, delivery_id)
  where c.key_hash = g.key_hash and c.delivery_id = g.delivery_id and c.state = 'publishing';
end
$function$;
CREATE OR REPLACE FUNCTION policy.claim(in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[], in_log_id uuid, in_at_ms bigint, in_config_version text, in_offsets bigint[], in_decision_ids uuid[], in_attempts integer[], in_agents text[], in_agent_sets text[], in_verdicts text[], in_reasons text[], in_not_before_ms bigint[], in_groups integer[], in_tenants text[], in_ordering_keys text[], in_origin_log_ids uuid[], in_origin_offsets bigint[], in_events bytea[], in_budgets text[], in_window_starts bigint[], in_ask_entries integer[], in_ask_budgets integer[], in_ask_rules text[], in_ask_limits bigint[], in_ask_on_exhaust text[], in_ask_until_ms bigint[], in_event_keys bytea[], in_version_kinds text[], in_versions text[], in_max_attempts integer[], in_backoff_ms bigint[], in_deadline_ms bigint[])
 RETURNS TABLE(mine boolean, entry integer, inserted boolean, log_id uuid, partition integer, "offset" bigint, agent text, agents jsonb, verdict text, reasons jsonb, charges jsonb, not_before_ms bigint, at_ms bigint, config_version text, override_code text, override_detail text, delivery jsonb)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  total constant int := coalesce(array_length(in_decision_ids, 1), 0);
  ask_total constant int := coalesce(array_length(in_ask_entries, 1), 0);
  known boolean[];
  used bigint[];
  blocked boolean[];
  verdicts text[] := in_verdicts;
  reasons jsonb[] := in_reasons::jsonb[];
  charges jsonb[];
  not_before bigint[] := in_not_before_ms;
  charged_entries int[] := '{}';
  charged_budgets int[] := '{}';
  won int[];
  ask int := 1;
  first_ask int;
  b int;
  exhausted jsonb;
  denied boolean;
  due_ms bigint;
  made jsonb;
  last_kinds text[];
  last_versions numeric[];
  grp int;
begin
  if not weir.own('policy', in_partition, in_epoch, in_topics, in_log_ids, in_emitted_below, in_claimed_at_ms) then
    return query select false, null::int, null::boolean, null::uuid, null::int, null::bigint, null::text, null::jsonb,
      null::text, null::jsonb, null::jsonb, null::bigint, null::bigint, null::text, null::text, null::text, null::jsonb;
    return;
  end if;

  if ask_total > 0 then
    insert into policy.budget (budget, window_start_ms, used)
    select g.budget, g.window_start_ms, 0
    from unnest(in_budgets, in_window_starts) as g (budget, window_start_ms)
    order by g.budget collate "C", g.window_start_ms
    on conflict (budget, window_start_ms) do nothing;

    perform from policy.budget h
    join unnest(in_budgets, in_window_starts) as g (budget, window_start_ms)
      on h.budget = g.budget and h.window_start_ms = g.window_start_ms
    order by h.budget collate "C", h.window_start_ms
    for update of h;
  end if;

  select array_agg(h.used order by g.place) into used
  from unnest(in_budgets, in_window_starts) with ordinality as g (budget, window_start_ms, place)
  join policy.budget h on h.budget = g.budget and h.window_start_ms = g.window_start_ms;

  select array_agg(v.decision_id is not null order by g.place) into known
  from unnest(in_decision_ids, in_attempts) with ordinality as g (decision_id, attempt, place)
  left join policy.verdict v on v.decision_id = g.decision_id and v.attempt = g.attempt;

  if exists (select from unnest(in_version_kinds) as kind where kind is not null) then
    select array_agg(v.kind order by o.grp), array_agg(v.version order by o.grp) into last_kinds, last_versions
    from (
      select distinct on (p.grp) p.grp, p.agent, p.ordering_key
      from unnest(in_groups, in_agents, in_ordering_keys) as p (grp, agent, ordering_key)
      order by p.grp
    ) o
    left join policy.version v on v.agent = o.agent and v.ordering_key = o.ordering_key;
  end if;

  blocked := array_fill(false, array[greatest(1, coalesce((select max(n) from unnest(in_groups) as n), 1))]);
  charges := array_fill('[]'::jsonb, array[greatest(1, total)]);

  for i in 1 .. total loop
    first_ask := ask;
    while ask <= ask_total and in_ask_entries[ask] = i loop
      ask := ask + 1;
    end loop;
    continue when known[i];
    grp := in_groups[i];

    if verdicts[i] in ('allow', 'defer') and last_kinds[grp] = in_version_kinds[i]
      and in_versions[i]::numeric < last_versions[grp] then
      verdicts[i] := 'stale';
      not_before[i] := null;
      reasons[i] := jsonb_build_array(jsonb_build_object('gate', 'version', 'code', 'older', 'detail',
        'a newer version of this object was let through to this agent before', 'rule', null, 'limit', null, 'used', null,
        'windowStartMs', null)) || reasons[i];
    elsif verdicts[i] = 'allow' and blocked[grp] then
      verdicts[i] := 'defer';
      not_before[i] := null;
      reasons[i] := jsonb_build_array(jsonb_build_object('gate', 'waiting_behind', 'code', 'behind', 'detail',
        'an earlier delivery of this agent and ordering key waits', 'rule', null, 'limit', null, 'used', null,
        'windowStartMs', null)) || reasons[i];
    elsif verdicts[i] = 'allow' and first_ask < ask then
      exhausted := '[]';
      denied := false;
      due_ms := null;
      made := '[]';
      for a in first_ask .. ask - 1 loop
        b := in_ask_budgets[a];
        if used[b] + 1 > in_ask_limits[a] then
          exhausted := exhausted || jsonb_build_object('gate', 'ceiling', 'code', 'exhausted', 'detail',
            format('%s of %s are used of %s', used[b], in_ask_limits[a], in_ask_rules[a]),
            'rule', in_ask_rules[a], 'limit', in_ask_limits[a], 'used', used[b], 'windowStartMs', in_window_starts[b]);
          denied := denied or in_ask_on_exhaust[a] = 'deny';
          due_ms := greatest(due_ms, in_ask_until_ms[a]);
        end if;
        made := made || jsonb_build_object('chargeId', in_decision_ids[i], 'budget', in_budgets[b],
          'windowStartMs', in_window_starts[b], 'amount', 1, 'limit', in_ask_limits[a]);
      end loop;
      if exhausted <> '[]' then
        verdicts[i] := case when denied then 'deny' else 'defer' end;
        not_before[i] := case when denied then null else due_ms end;
        reasons[i] := exhausted || reasons[i];
      else
        charges[i] := made;
        for a in first_ask .. ask - 1 loop
          b := in_ask_budgets[a];
          used[b] := used[b] + 1;
          charged_entries := charged_entries || i;
          charged_budgets := charged_budgets || b;
        end loop;
      end if;
    end if;

    if verdicts[i] = 'defer' then
      blocked[grp] := true;
    elsif verdicts[i] = 'allow' and in_version_kinds[i] is not null then
      last_kinds[grp] := in_version_kinds[i];
      last_versions[grp] := in_versions[i]::numeric;
    end if;
  end loop;

  with ins as (
    insert into policy.verdict (decision_id, attempt, agent, agents, log_id, partition, "offset", verdict, reasons, charges,
                                not_before_ms, at_ms, config_version)
    select g.decision_id, g.attempt, g.agent, g.agents::jsonb, in_log_id, in_partition, g.at_offset, g.verdict, g.reasons,
           g.charges, g.not_before_ms, in_at_ms, in_config_version
    from unnest(in_decision_ids, in_attempts, in_agents, in_agent_sets, in_offsets, verdicts, reasons, charges[1:total], not_before)
      as g (decision_id, attempt, agent, agents, at_offset, verdict, reasons, charges, not_before_ms)
    on conflict (decision_id, attempt) do nothing
    returning decision_id, attempt
  )
  select coalesce(array_agg(g.place::int), '{}') into won
  from unnest(in_decision_ids, in_attempts) with ordinality as g (decision_id, attempt, place)
  join ins on ins.decision_id = g.decision_id and ins.attempt = g.attempt;

  if array_length(charged_entries, 1) > 0 then
    with ins as (
      insert into policy.charge (charge_id, budget, window_start_ms, amount, attempt)
      select in_decision_ids[c.entry], in_budgets[c.budget], in_window_starts[c.budget], 1, in_attempts[c.entry]
      from unnest(charged_entries, charged_budgets) as c (entry, budget)
      where c.entry = any (won)
      on conflict (charge_id, budget) do nothing
      returning budget, window_start_ms, amount
    ), sums as (
      select ins.budget, ins.window_start_ms, sum(ins.amount) as amount from ins group by ins.budget, ins.window_start_ms
    )
    update policy.budget h
    set used = h.used + sums.amount
    from sums
    where h.budget = sums.budget and h.window_start_ms = sums.window_start_ms;
  end if;

  insert into policy.waiting as w (decision_id, agent, ordering_key, tenant, partition, log_id, "offset", event, not_before_ms,
                                   rate_reserved, next_attempt, event_key)
  select in_decision_ids[i], in_agents[i], in_ordering_keys[i], in_tenants[i], in_partition, in_origin_log_ids[i],
         in_origin_offsets[i], in_events[i], not_before[i], reasons[i] @> '[{"code": "slot_reserved"}]', in_attempts[i] + 1,
         in_event_keys[i]
  from unnest(won) as i
  where verdicts[i] = 'defer'
  on conflict (decision_id) do update
  set not_before_ms = excluded.not_before_ms,
      rate_reserved = excluded.rate_reserved,
      next_attempt = excluded.next_attempt
  where w.next_attempt < excluded.next_attempt;

  update policy.waiting w
  set ended_attempt = in_attempts[i]
  from unnest(won) as i
  where w.decision_id = in_decision_ids[i] and verdicts[i] <> 'defer';

  insert into policy.version as c (agent, ordering_key, kind, version, partition, decision_id, at_ms)
  select distinct on (in_agents[i], in_ordering_keys[i])
         in_agents[i], in_ordering_keys[i], in_version_kinds[i], in_versions[i]::numeric, in_partition, in_decision_ids[i],
         in_at_ms
  from unnest(won) as i
  where verdicts[i] = 'allow' and in_version_kinds[i] is not null
  order by in_agents[i], in_ordering_keys[i], i desc
  on conflict (agent, ordering_key) do update
  set kind = excluded.kind, version = excluded.version, decision_id = excluded.decision_id, at_ms = excluded.at_ms;

  insert into policy.delivery as d (decision_id, agent, tenant, ordering_key, event_key, partition, log_id, "offset", event, attempt,
                                    deliveries, state, max_attempts, backoff_ms, deadline_ms, overdue_at_ms)
  select in_decision_ids[i], in_agents[i], in_tenants[i], in_ordering_keys[i], in_event_keys[i], in_partition,
         in_origin_log_ids[i], in_origin_offsets[i], in_events[i], in_attempts[i], 1, 'in_progress', in_max_attempts[i],
         in_backoff_ms[i], in_deadline_ms[i], in_at_ms + in_deadline_ms[i]
  from unnest(won) as i
  where verdicts[i] = 'allow' and in_max_attempts[i] is not null
  on conflict (decision_id) do update
  set attempt = excluded.attempt,
      deliveries = d.deliveries + 1,
      state = 'in_progress',
      overdue_at_ms = in_at_ms + d.deadline_ms,
      overdue_produced_at_ms = null
  where d.attempt < excluded.attempt and d.state = 'waiting';

  update policy.delivery d
  set state = verdicts[i], ended_log_id = in_log_id, ended_offset = in_offsets[i]
  from unnest(won) as i
  where d.decision_id = in_decision_ids[i] and d.state = 'waiting' and verdicts[i] not in ('allow', 'defer');

  return query
  select true, e.place::int, e.place = any (won), v.log_id, v.partition, v."offset", v.agent, v.agents, v.verdict, v.reasons,
         v.charges, v.not_before_ms, v.at_ms, v.config_version, o.code, o.detail,
         case when d.decision_id is not null then jsonb_build_object('number', d.deliveries, 'maxAttempts', d.max_attempts,
           'backoffMs', d.backoff_ms, 'deadlineMs', d.deadline_ms) end
  from unnest(in_decision_ids, in_attempts) with ordinality as e (decision_id, attempt, place)
  join policy.verdict v on v.decision_id = e.decision_id and v.attempt = e.attempt
  left join policy.override o on o.decision_id = e.decision_id and o.attempt = e.attempt
  left join policy.delivery d on d.decision_id = e.decision_id
  order by e.place;
end
$function$;
CREATE OR REPLACE FUNCTION policy.claim_outcomes(in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[], in_log_id uuid, in_at_ms bigint, in_offsets bigint[], in_decision_ids uuid[], in_attempts integer[], in_kinds text[], in_statuses text[], in_effects text[], in_results text[], in_codes text[], in_not_before_ms bigint[])
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  won int[];
begin
  if not weir.own('policy', in_partition, in_epoch, in_topics, in_log_ids, in_emitted_below, in_claimed_at_ms) then
    return false;
  end if;

  with ins as (
    insert into policy.outcome (decision_id, attempt, kind, log_id, partition, "offset", status, effects, result, code,
                                not_before_ms, at_ms)
    select g.decision_id, g.attempt, g.kind, in_log_id, in_partition, g.at_offset, g.status, g.effects, g.result, g.code,
           g.not_before_ms, in_at_ms
    from unnest(in_offsets, in_decision_ids, in_attempts, in_kinds, in_statuses, in_effects, in_results, in_codes, in_not_before_ms)
      as g (at_offset, decision_id, attempt, kind, status, effects, result, code, not_before_ms)
    on conflict (decision_id, attempt, kind) do nothing
    returning decision_id, attempt, kind
  )
  select coalesce(array_agg(g.place::int), '{}') into won
  from unnest(in_decision_ids, in_attempts, in_kinds) with ordinality as g (decision_id, attempt, kind, place)
  join ins on ins.decision_id = g.decision_id and ins.attempt = g.attempt and ins.kind = g.kind;

  -- Of one delivery the last result of the batch counts: a report may follow its own deadline.
  update policy.delivery d
  set state = case last.result when 'again' then 'waiting' else last.result end,
      parked_code = case last.result when 'parked' then last.code end,
      ended_log_id = case when last.result = 'again' then null else in_log_id end,
      ended_offset = case when last.result = 'again' then null else last.at_offset end
  from (
    select distinct on (in_decision_ids[i])
           in_decision_ids[i] as decision_id, in_results[i] as result, in_codes[i] as code, in_offsets[i] as at_offset
    from unnest(won) as i
    where in_results[i] in ('completed', 'again', 'parked')
    order by in_decision_ids[i], i desc
  ) last
  where d.decision_id = last.decision_id and d.partition = in_partition;

  insert into policy.waiting as w (decision_id, agent, ordering_key, tenant, partition, log_id, "offset", event, not_before_ms,
                                   rate_reserved, next_attempt, event_key, cause)
  select d.decision_id, d.agent, d.ordering_key, d.tenant, in_partition, d.log_id, d."offset", d.event, in_not_before_ms[i], false,
         in_attempts[i] + 1, d.event_key, 'again'
  from unnest(won) as i
  join policy.delivery d on d.decision_id = in_decision_ids[i]
  where in_results[i] = 'again' and d.event is not null
  on conflict (decision_id) do update
  set not_before_ms = excluded.not_before_ms,
      rate_reserved = false,
      next_attempt = excluded.next_attempt,
      cause = 'again',
      ended_attempt = null
  where w.next_attempt < excluded.next_attempt;
  return true;
end
$function$;
CREATE OR REPLACE FUNCTION policy.expire(in_partition integer, in_epoch bigint, in_before_ms bigint, in_limit integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  longest_window_ms constant bigint := 31 * 86400000::bigint;
  removed int;
  more int;
  old_ids uuid[];
  old_attempts int[];
begin
  if not weir.own('policy', in_partition, in_epoch, '{}', '{}', '{}', '{}') then
    return -1;
  end if;

  -- Offsets grow with time, so the lowest ones are the oldest: no index by time is needed. What stays does not count for the limit,
  -- or much of it would stop the removal of what is behind.
  select coalesce(array_agg(v.decision_id), '{}'), coalesce(array_agg(v.attempt), '{}') into old_ids, old_attempts
  from weir.owner_position p
  cross join lateral (
    select o.decision_id, o.attempt, o.at_ms from policy.verdict o
    where o.log_id = p.log_id and o.partition = in_partition and o."offset" < p.emitted_below
      and not exists (select from policy.verdict y where y.decision_id = o.decision_id and y.attempt > o.attempt)
      and not exists (select from policy.waiting w where w.decision_id = o.decision_id)
      and not exists (
        select from policy.delivery d
        where d.decision_id = o.decision_id and (d.state in ('in_progress', 'waiting') or d.event is not null)
      )
    order by o."offset" limit in_limit
  ) v
  where p.stage = 'policy' and p.partition = in_partition and v.at_ms < in_before_ms;

  delete from policy.override o using unnest(old_ids, old_attempts) as g (decision_id, attempt)
  where o.decision_id = g.decision_id and o.attempt = g.attempt;
  delete from policy.outcome o using unnest(old_ids) as g (decision_id) where o.decision_id = g.decision_id;
  delete from policy.delivery d using unnest(old_ids) as g (decision_id) where d.decision_id = g.decision_id;
  delete from policy.charge c using unnest(old_ids) as g (decision_id) where c.charge_id = g.decision_id;
  delete from policy.verdict v using unnest(old_ids, old_attempts) as g (decision_id, attempt)
  where v.decision_id = g.decision_id and v.attempt = g.attempt;
  get diagnostics removed = row_count;

  delete from policy.version c
  where c.ctid = any (array(
    select o.ctid from policy.version o where o.partition = in_partition and o.at_ms < in_before_ms order by o.at_ms limit in_limit
  ));
  get diagnostics more = row_count;
  removed := removed + more;

  -- A budget without a window never starts again: its row stays. Those of all partitions are in one table, so none is waited for.
  delete from policy.budget h
  where h.ctid = any (array(
    select o.ctid from policy.budget o
    where o.window_start_ms > 0 and o.window_start_ms < in_before_ms - longest_window_ms
    limit in_limit for update skip locked
  ));
  get diagnostics more = row_count;
  return removed + more;
end
$function$;
CREATE OR REPLACE FUNCTION policy.mark_overdue(in_partition integer, in_epoch bigint, in_decision_ids uuid[], in_attempts integer[])
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
begin
  if not weir.own('policy', in_partition, in_epoch, '{}', '{}', '{}', '{}') then
    return false;
  end if;
  update policy.delivery d
  set overdue_produced_at_ms = (extract(epoch from clock_timestamp()) * 1000)::bigint
  from unnest(in_decision_ids, in_attempts) as g (decision_id, attempt)
  where d.decision_id = g.decision_id and d.partition = in_partition and d.attempt = g.attempt and d.state = 'in_progress';
  return true;
end
$function$;
CREATE OR REPLACE FUNCTION policy.mark_released(in_partition integer, in_epoch bigint, in_decision_ids uuid[], in_attempts integer[])
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
begin
  if not weir.own('policy', in_partition, in_epoch, '{}', '{}', '{}', '{}') then
    return false;
  end if;
  update policy.waiting w
  set released_attempt = g.attempt, released_at_ms = (extract(epoch from clock_timestamp()) * 1000)::bigint
  from unnest(in_decision_ids, in_attempts) as g (decision_id, attempt)
  where w.decision_id = g.decision_id
    and w.partition = in_partition
    and w.next_attempt = g.attempt
    and w.released_attempt <= g.attempt
    and w.ended_attempt is null;
  return true;
end
$function$;
CREATE OR REPLACE FUNCTION policy.open_events(in_event_keys bytea[])
 RETURNS SETOF bytea
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select g.event_key from unnest(in_event_keys) as g (event_key)
  where exists (select from policy.delivery d where d.event_key = g.event_key and d.state in ('in_progress', 'waiting'))
     or exists (select from policy.waiting w where w.event_key = g.event_key)
$function$;
CREATE OR REPLACE FUNCTION policy.park(in_partition integer, in_epoch bigint, in_decision_ids uuid[], in_attempts integer[], in_code text, in_detail text, in_at_ms bigint)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
begin
  if not weir.own('policy', in_partition, in_epoch, '{}', '{}', '{}', '{}') then
    return false;
  end if;

  insert into policy.override (decision_id, attempt, code, detail)
  select g.decision_id, g.attempt, in_code, in_detail
  from unnest(in_decision_ids, in_attempts) as g (decision_id, attempt)
  join policy.verdict v on v.decision_id = g.decision_id and v.attempt = g.attempt and v.verdict = 'allow'
  on conflict (decision_id, attempt) do nothing;

  update policy.delivery d
  set state = 'parked', parked_code = in_code, ended_log_id = v.log_id, ended_offset = v."offset"
  from unnest(in_decision_ids, in_attempts) as g (decision_id, attempt)
  join policy.verdict v on v.decision_id = g.decision_id and v.attempt = g.attempt
  where d.decision_id = g.decision_id and d.attempt = g.attempt and d.state = 'in_progress';

  perform from policy.budget h
  where exists (
    select from policy.charge c
    where c.charge_id = any (in_decision_ids) and c.budget = h.budget and c.window_start_ms = h.window_start_ms
  )
  order by h.budget collate "C", h.window_start_ms
  for update of h;

  with void as (
    update policy.charge c
    set voided_at_ms = in_at_ms
    from unnest(in_decision_ids, in_attempts) as g (decision_id, attempt)
    where c.charge_id = g.decision_id and c.attempt = g.attempt and c.voided_at_ms is null
    returning c.budget, c.window_start_ms, c.amount
  ), sums as (
    select void.budget, void.window_start_ms, sum(void.amount) as amount from void group by void.budget, void.window_start_ms
  )
  update policy.budget h
  set used = h.used - sums.amount
  from sums
  where h.budget = sums.budget and h.window_start_ms = sums.window_start_ms;
  return true;
end
$function$;
CREATE OR REPLACE FUNCTION policy.restore(in_partition integer, in_epoch bigint, in_decision_ids uuid[], in_attempts integer[], in_agents text[], in_agent_sets text[], in_log_ids uuid[], in_offsets bigint[], in_verdicts text[], in_reasons text[], in_charges text[], in_not_before_ms bigint[], in_at_ms bigint[], in_config_versions text[], in_charge_entries integer[], in_charge_budgets text[], in_charge_window_starts bigint[], in_charge_amounts bigint[], in_waiting_entries integer[], in_waiting_tenants text[], in_waiting_ordering_keys text[], in_waiting_log_ids uuid[], in_waiting_offsets bigint[], in_waiting_events bytea[], in_waiting_reserved boolean[], in_waiting_event_keys bytea[], in_ended uuid[], in_ended_attempts integer[])
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  won int[];
  waiting int;
begin
  if not weir.own('policy', in_partition, in_epoch, '{}', '{}', '{}', '{}') then
    return -1;
  end if;

  with ins as (
    insert into policy.verdict (decision_id, attempt, agent, agents, log_id, partition, "offset", verdict, reasons, charges,
                                not_before_ms, at_ms, config_version)
    select g.decision_id, g.attempt, g.agent, g.agents::jsonb, g.log_id, in_partition, g.at_offset, g.verdict, g.reasons::jsonb,
           g.charges::jsonb, g.not_before_ms, g.at_ms, g.config_version
    from unnest(in_decision_ids, in_attempts, in_agents, in_agent_sets, in_log_ids, in_offsets, in_verdicts, in_reasons,
                in_charges, in_not_before_ms, in_at_ms, in_config_versions)
      as g (decision_id, attempt, agent, agents, log_id, at_offset, verdict, reasons, charges, not_before_ms, at_ms, config_version)
    on conflict (decision_id, attempt) do nothing
    returning decision_id, attempt
  )
  select coalesce(array_agg(g.place::int), '{}') into won
  from unnest(in_decision_ids, in_attempts) with ordinality as g (decision_id, attempt, place)
  join ins on ins.decision_id = g.decision_id and ins.attempt = g.attempt;

  insert into policy.budget (budget, window_start_ms, used)
  select g.budget, g.window_start_ms, 0
  from unnest(in_charge_budgets, in_charge_window_starts) as g (budget, window_start_ms)
  group by g.budget, g.window_start_ms
  order by g.budget collate "C", g.window_start_ms
  on conflict (budget, window_start_ms) do nothing;

  perform from policy.budget h
  where (h.budget, h.window_start_ms) in (
    select g.budget, g.window_start_ms from unnest(in_charge_budgets, in_charge_window_starts) as g (budget, window_start_ms)
  )
  order by h.budget collate "C", h.window_start_ms
  for update of h;

  with ins as (
    insert into policy.charge (charge_id, budget, window_start_ms, amount, attempt)
    select in_decision_ids[c.entry], c.budget, c.window_start_ms, c.amount, in_attempts[c.entry]
    from unnest(in_charge_entries, in_charge_budgets, in_charge_window_starts, in_charge_amounts)
      as c (entry, budget, window_start_ms, amount)
    where c.entry = any (won)
    on conflict (charge_id, budget) do nothing
    returning budget, window_start_ms, amount
  ), sums as (
    select ins.budget, ins.window_start_ms, sum(ins.amount) as amount from ins group by ins.budget, ins.window_start_ms
  )
  update policy.budget h
  set used = h.used + sums.amount
  from sums
  where h.budget = sums.budget and h.window_start_ms = sums.window_start_ms;

  -- A later verdict that was claimed and not emitted yet knows better than what was emitted.
  with ins as (
    insert into policy.waiting as w (decision_id, agent, ordering_key, tenant, partition, log_id, "offset", event, not_before_ms,
                                     rate_reserved, next_attempt, event_key)
    select in_decision_ids[g.entry], in_agents[g.entry], g.ordering_key, g.tenant, in_partition, g.log_id, g.at_offset, g.event,
           in_not_before_ms[g.entry], g.rate_reserved, in_attempts[g.entry] + 1, g.event_key
    from unnest(in_waiting_entries, in_waiting_tenants, in_waiting_ordering_keys, in_waiting_log_ids, in_waiting_offsets,
                in_waiting_events, in_waiting_reserved, in_waiting_event_keys)
      as g (entry, tenant, ordering_key, log_id, at_offset, event, rate_reserved, event_key)
    where not exists (
      select from policy.verdict v where v.decision_id = in_decision_ids[g.entry] and v.attempt > in_attempts[g.entry]
    )
    on conflict (decision_id) do update
    set not_before_ms = excluded.not_before_ms,
        rate_reserved = excluded.rate_reserved,
        next_attempt = excluded.next_attempt
    where w.next_attempt < excluded.next_attempt
    returning 1
  )
  select count(*)::int into waiting from ins;

  -- A row of a later attempt was made by a report that is claimed and not emitted yet.
  delete from policy.waiting w
  using unnest(in_ended, in_ended_attempts) as g (decision_id, attempt)
  where w.partition = in_partition and w.decision_id = g.decision_id and w.next_attempt <= g.attempt;
  return cardinality(won) + waiting;
end
$function$;
CREATE OR REPLACE FUNCTION policy.restore_deliveries(in_partition integer, in_epoch bigint, in_decision_ids uuid[], in_agents text[], in_tenants text[], in_ordering_keys text[], in_event_keys bytea[], in_log_ids uuid[], in_offsets bigint[], in_events bytea[], in_attempts integer[], in_deliveries integer[], in_states text[], in_parked_codes text[], in_max_attempts integer[], in_backoff_ms bigint[], in_deadline_ms bigint[], in_overdue_at_ms bigint[], in_ended_log_ids uuid[], in_ended_offsets bigint[], in_not_before_ms bigint[], in_outcome_ids uuid[], in_outcome_attempts integer[], in_outcome_kinds text[], in_outcome_log_ids uuid[], in_outcome_offsets bigint[], in_outcome_statuses text[], in_outcome_effects text[], in_outcome_results text[], in_outcome_codes text[], in_outcome_not_before_ms bigint[], in_outcome_at_ms bigint[], in_version_agents text[], in_version_ordering_keys text[], in_version_kinds text[], in_versions text[], in_version_ids uuid[], in_version_at_ms bigint[])
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  restored int;
  more int;
begin
  if not weir.own('policy', in_partition, in_epoch, '{}', '{}', '{}', '{}') then
    return -1;
  end if;

  insert into policy.outcome (decision_id, attempt, kind, log_id, partition, "offset", status, effects, result, code, not_before_ms, at_ms)
  select g.decision_id, g.attempt, g.kind, g.log_id, in_partition, g.at_offset, g.status, g.effects, g.result, g.code,
         g.not_before_ms, g.at_ms
  from unnest(in_outcome_ids, in_outcome_attempts, in_outcome_kinds, in_outcome_log_ids, in_outcome_offsets, in_outcome_statuses,
              in_outcome_effects, in_outcome_results, in_outcome_codes, in_outcome_not_before_ms, in_outcome_at_ms)
    as g (decision_id, attempt, kind, log_id, at_offset, status, effects, result, code, not_before_ms, at_ms)
  on conflict (decision_id, attempt, kind) do nothing;
  get diagnostics restored = row_count;

  -- Only what Postgres lost: a row with a later attempt, or one that ended, knows better. A waiting row says that it waits.
  insert into policy.delivery as d (decision_id, agent, tenant, ordering_key, event_key, partition, log_id, "offset", event, attempt,
                                    deliveries, state, parked_code, max_attempts, backoff_ms, deadline_ms, overdue_at_ms, ended_log_id,
                                    ended_offset)
  select g.decision_id, g.agent, g.tenant, g.ordering_key, g.event_key, in_partition, g.log_id, g.at_offset, g.event, g.attempt,
         g.deliveries, g.state, g.parked_code, g.max_attempts, g.backoff_ms, g.deadline_ms, g.overdue_at_ms, g.ended_log_id,
         g.ended_offset
  from unnest(in_decision_ids, in_agents, in_tenants, in_ordering_keys, in_event_keys, in_log_ids, in_offsets, in_events, in_attempts,
              in_deliveries, in_states, in_parked_codes, in_max_attempts, in_backoff_ms, in_deadline_ms, in_overdue_at_ms,
              in_ended_log_ids, in_ended_offsets)
    as g (decision_id, agent, tenant, ordering_key, event_key, log_id, at_offset, event, attempt, deliveries, state, parked_code,
          max_attempts, backoff_ms, deadline_ms, overdue_at_ms, ended_log_id, ended_offset)
  on conflict (decision_id) do update
  set attempt = excluded.attempt, deliveries = excluded.deliveries, state = excluded.state, parked_code = excluded.parked_code,
      event = coalesce(d.event, excluded.event), overdue_at_ms = excluded.overdue_at_ms,
      ended_log_id = excluded.ended_log_id, ended_offset = excluded.ended_offset
  where d.attempt < excluded.attempt
    or (d.attempt = excluded.attempt and d.state = 'in_progress' and excluded.state <> 'in_progress')
    or (d.attempt = excluded.attempt and d.state = 'waiting' and excluded.state not in ('in_progress', 'waiting'))
    -- A late report ends what was parked for want of one.
    or (d.attempt = excluded.attempt and d.state = 'parked' and excluded.state = 'completed');
  get diagnostics more = row_count;
  restored := restored + more;

  insert into policy.waiting as w (decision_id, agent, ordering_key, tenant, partition, log_id, "offset", event, not_before_ms,
                                   rate_reserved, next_attempt, event_key, cause)
  select g.decision_id, g.agent, g.ordering_key, g.tenant, in_partition, g.log_id, g.at_offset, g.event, g.not_before_ms, false,
         g.attempt + 1, g.event_key, 'again'
  from unnest(in_decision_ids, in_agents, in_tenants, in_ordering_keys, in_event_keys, in_log_ids, in_offsets, in_events, in_attempts,
              in_states, in_not_before_ms)
    as g (decision_id, agent, tenant, ordering_key, event_key, log_id, at_offset, event, attempt, state, not_before_ms)
  where g.state = 'waiting' and g.event is not null
    and not exists (select from policy.verdict v where v.decision_id = g.decision_id and v.attempt > g.attempt)
  on conflict (decision_id) do update
  set not_before_ms = excluded.not_before_ms, rate_reserved = false, next_attempt = excluded.next_attempt, cause = 'again',
      ended_attempt = null
  where w.next_attempt < excluded.next_attempt;
  get diagnostics more = row_count;
  restored := restored + more;

  update policy.waiting w
  set cause = 'again'
  from policy.delivery d
  where w.decision_id = any (in_decision_ids) and w.partition = in_partition and d.decision_id = w.decision_id and w.cause <> 'again';

  insert into policy.version as c (agent, ordering_key, kind, version, partition, decision_id, at_ms)
  select distinct on (g.agent, g.ordering_key) g.agent, g.ordering_key, g.kind, g.version::numeric, in_partition, g.decision_id, g.at_ms
  from unnest(in_version_agents, in_version_ordering_keys, in_version_kinds, in_versions, in_version_ids, in_version_at_ms)
    with ordinality as g (agent, ordering_key, kind, version, decision_id, at_ms, place)
  order by g.agent, g.ordering_key, g.place desc
  on conflict (agent, ordering_key) do update
  set kind = excluded.kind, version = excluded.version, decision_id = excluded.decision_id, at_ms = excluded.at_ms
  where c.at_ms <= excluded.at_ms and (c.kind <> excluded.kind or c.version < excluded.version);
  get diagnostics more = row_count;
  return restored + more;
end
$function$;
CREATE OR REPLACE FUNCTION policy.settle(in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[], in_decision_ids uuid[])
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  deleted int;
begin
  if not weir.own('policy', in_partition, in_epoch, in_topics, in_log_ids, in_emitted_below, in_claimed_at_ms) then
    return -1;
  end if;
  delete from policy.waiting w
  using policy.verdict v, weir.owner_position p
  where w.partition = in_partition
    and w.ended_attempt is not null
    and (in_decision_ids is null or w.decision_id = any (in_decision_ids))
    and v.decision_id = w.decision_id and v.attempt = w.ended_attempt
    and p.stage = 'policy' and p.partition = in_partition and p.log_id = v.log_id and p.emitted_below > v."offset";
  get diagnostics deleted = row_count;

  update policy.delivery d
  set event = null
  from weir.owner_position p
  where d.partition = in_partition
    and d.ended_log_id is not null and d.event is not null
    and (in_decision_ids is null or d.decision_id = any (in_decision_ids))
    and p.stage = 'policy' and p.partition = in_partition and p.log_id = d.ended_log_id and p.emitted_below > d.ended_offset;
  return deleted;
end
$function$;
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

-- triggers
CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON audit.landed_interval FOR EACH ROW EXECUTE FUNCTION audit.refuse_change() -- enabled always;
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON audit.landed_interval FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change() -- enabled always;
CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON audit.message FOR EACH ROW EXECUTE FUNCTION audit.refuse_change() -- enabled always;
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON audit.message FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change() -- enabled always;

-- grants on schemas
grant usage on schema audit to weir_audit_reader;
grant usage on schema audit to weir_audit_sink;
grant usage on schema dedup to weir_dedup;
grant usage on schema edge to weir_ingest;
grant usage on schema policy to weir_dedup;
grant usage on schema policy to weir_policy;
grant usage on schema weir to weir_audit_reader;
grant usage on schema weir to weir_audit_sink;
grant usage on schema weir to weir_dedup;
grant usage on schema weir to weir_ingest;
grant usage on schema weir to weir_policy;

-- grants on tables, views and sequences
grant delete, insert, select on table policy.outcome to weir_policy;
grant delete, insert, select on table policy.override to weir_policy;
grant delete, insert, select on table policy.verdict to weir_policy;
grant delete, insert, select, update on table edge.claim to weir_ingest;
grant delete, insert, select, update on table policy.budget to weir_policy;
grant delete, insert, select, update on table policy.charge to weir_policy;
grant delete, insert, select, update on table policy.delivery to weir_policy;
grant delete, insert, select, update on table policy.version to weir_policy;
grant delete, insert, select, update on table policy.waiting to weir_policy;
grant insert on table audit.landed_interval to weir_audit_sink;
grant insert on table audit.message to weir_audit_sink;
grant insert, select on table dedup.business_claim to weir_dedup;
grant insert, select on table dedup.claim to weir_dedup;
grant insert, select, update on table audit."position" to weir_audit_sink;
grant insert, select, update on table weir.owner to weir_audit_sink;
grant insert, select, update on table weir.owner to weir_dedup;
grant insert, select, update on table weir.owner to weir_policy;
grant insert, select, update on table weir.owner_position to weir_audit_sink;
grant insert, select, update on table weir.owner_position to weir_dedup;
grant insert, select, update on table weir.owner_position to weir_policy;
grant select on table audit.coverage to weir_audit_reader;
grant select on table audit.messages to weir_audit_reader;
grant select on table weir.migration to weir_audit_reader;
grant select on table weir.migration to weir_audit_sink;
grant select on table weir.migration to weir_dedup;
grant select on table weir.migration to weir_ingest;
grant select on table weir.migration to weir_policy;
grant select, update on table audit.head to weir_audit_sink;

-- grants on functions
grant execute on function audit.ensure_partitions(days_ahead integer) to weir_audit_sink;
grant execute on function audit.headers(packed bytea) to weir_audit_reader;
grant execute on function dedup.claim(in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[], in_log_id uuid, in_offsets bigint[], in_event_keys bytea[], in_event_key_texts text[], in_tenants text[], in_sources text[], in_delivery_ids uuid[], in_payload_digests bytea[], in_appended_at_ms bigint[], in_business_keys bytea[], in_spaces text[], in_values text[]) to weir_dedup;
grant execute on function dedup.restore(in_partition integer, in_epoch bigint, in_event_keys bytea[], in_event_key_texts text[], in_tenants text[], in_sources text[], in_delivery_ids uuid[], in_log_ids uuid[], in_offsets bigint[], in_payload_digests bytea[], in_appended_at_ms bigint[], in_business_keys bytea[], in_spaces text[], in_values text[]) to weir_dedup;
grant execute on function edge.accept(in_keys bytea[], in_delivery_ids uuid[], in_digests bytea[], in_log_id uuid) to weir_ingest;
grant execute on function edge.claim(in_keys bytea[], in_delivery_ids uuid[], in_digests bytea[], in_keep_ms bigint[], in_log_id uuid, in_lease_ms integer) to weir_ingest;
grant execute on function edge.expire(in_limit integer) to weir_ingest;
grant execute on function edge.release(in_keys bytea[], in_delivery_ids uuid[]) to weir_ingest;
grant execute on function policy.claim(in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[], in_log_id uuid, in_at_ms bigint, in_config_version text, in_offsets bigint[], in_decision_ids uuid[], in_attempts integer[], in_agents text[], in_agent_sets text[], in_verdicts text[], in_reasons text[], in_not_before_ms bigint[], in_groups integer[], in_tenants text[], in_ordering_keys text[], in_origin_log_ids uuid[], in_origin_offsets bigint[], in_events bytea[], in_budgets text[], in_window_starts bigint[], in_ask_entries integer[], in_ask_budgets integer[], in_ask_rules text[], in_ask_limits bigint[], in_ask_on_exhaust text[], in_ask_until_ms bigint[], in_event_keys bytea[], in_version_kinds text[], in_versions text[], in_max_attempts integer[], in_backoff_ms bigint[], in_deadline_ms bigint[]) to weir_policy;
grant execute on function policy.claim_outcomes(in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[], in_log_id uuid, in_at_ms bigint, in_offsets bigint[], in_decision_ids uuid[], in_attempts integer[], in_kinds text[], in_statuses text[], in_effects text[], in_results text[], in_codes text[], in_not_before_ms bigint[]) to weir_policy;
grant execute on function policy.expire(in_partition integer, in_epoch bigint, in_before_ms bigint, in_limit integer) to weir_policy;
grant execute on function policy.mark_overdue(in_partition integer, in_epoch bigint, in_decision_ids uuid[], in_attempts integer[]) to weir_policy;
grant execute on function policy.mark_released(in_partition integer, in_epoch bigint, in_decision_ids uuid[], in_attempts integer[]) to weir_policy;
grant execute on function policy.open_events(in_event_keys bytea[]) to weir_dedup;
grant execute on function policy.open_events(in_event_keys bytea[]) to weir_policy;
grant execute on function policy.park(in_partition integer, in_epoch bigint, in_decision_ids uuid[], in_attempts integer[], in_code text, in_detail text, in_at_ms bigint) to weir_policy;
grant execute on function policy.restore(in_partition integer, in_epoch bigint, in_decision_ids uuid[], in_attempts integer[], in_agents text[], in_agent_sets text[], in_log_ids uuid[], in_offsets bigint[], in_verdicts text[], in_reasons text[], in_charges text[], in_not_before_ms bigint[], in_at_ms bigint[], in_config_versions text[], in_charge_entries integer[], in_charge_budgets text[], in_charge_window_starts bigint[], in_charge_amounts bigint[], in_waiting_entries integer[], in_waiting_tenants text[], in_waiting_ordering_keys text[], in_waiting_log_ids uuid[], in_waiting_offsets bigint[], in_waiting_events bytea[], in_waiting_reserved boolean[], in_waiting_event_keys bytea[], in_ended uuid[], in_ended_attempts integer[]) to weir_policy;
grant execute on function policy.restore_deliveries(in_partition integer, in_epoch bigint, in_decision_ids uuid[], in_agents text[], in_tenants text[], in_ordering_keys text[], in_event_keys bytea[], in_log_ids uuid[], in_offsets bigint[], in_events bytea[], in_attempts integer[], in_deliveries integer[], in_states text[], in_parked_codes text[], in_max_attempts integer[], in_backoff_ms bigint[], in_deadline_ms bigint[], in_overdue_at_ms bigint[], in_ended_log_ids uuid[], in_ended_offsets bigint[], in_not_before_ms bigint[], in_outcome_ids uuid[], in_outcome_attempts integer[], in_outcome_kinds text[], in_outcome_log_ids uuid[], in_outcome_offsets bigint[], in_outcome_statuses text[], in_outcome_effects text[], in_outcome_results text[], in_outcome_codes text[], in_outcome_not_before_ms bigint[], in_outcome_at_ms bigint[], in_version_agents text[], in_version_ordering_keys text[], in_version_kinds text[], in_versions text[], in_version_ids uuid[], in_version_at_ms bigint[]) to weir_policy;
grant execute on function policy.settle(in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[], in_decision_ids uuid[]) to weir_policy;
grant execute on function weir.own(in_stage text, in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[]) to weir_audit_sink;
grant execute on function weir.own(in_stage text, in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[]) to weir_dedup;
grant execute on function weir.own(in_stage text, in_partition integer, in_epoch bigint, in_topics text[], in_log_ids uuid[], in_emitted_below bigint[], in_claimed_at_ms bigint[]) to weir_policy;
grant execute on function weir.take_over(in_stage text, in_partition integer) to weir_audit_sink;
grant execute on function weir.take_over(in_stage text, in_partition integer) to weir_dedup;
grant execute on function weir.take_over(in_stage text, in_partition integer) to weir_policy;
