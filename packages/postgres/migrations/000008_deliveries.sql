-- Policy: deliveries that agents report on, versions, and the end of old rows.
-- why: an agent reports how each delivery ended; until it does, the delivery is open, can come again, and can be overdue. The last
--      version let through is compared in the statement that stores the verdict. Rows that no re-read can ask for any more go.
-- locks: policy.waiting briefly (two columns with constant defaults).
-- old code: unsafe (policy.claim has more parameters: stop policy, migrate, start it)

alter table policy.waiting
  add column event_key bytea,
  add column cause text not null default 'due' check (cause in ('due', 'again'));
comment on column policy.waiting.cause is 'due: a deferral. again: the agent reported a failure without effects.';

create table policy.delivery (
  decision_id uuid not null primary key,
  agent text not null,
  tenant text not null,
  ordering_key text not null,
  event_key bytea not null,
  partition int not null,
  log_id uuid not null,
  "offset" bigint not null,
  event bytea,
  attempt int not null check (attempt >= 0),
  deliveries int not null check (deliveries > 0),
  state text not null check (state in ('in_progress', 'waiting', 'completed', 'parked', 'deny', 'stale')),
  parked_code text,
  max_attempts int not null check (max_attempts > 0),
  backoff_ms bigint not null check (backoff_ms >= 0),
  deadline_ms bigint not null check (deadline_ms > 0),
  overdue_at_ms bigint not null,
  overdue_produced_at_ms bigint,
  ended_log_id uuid,
  ended_offset bigint
) with (fillfactor = 80); -- each row is updated when its report comes
comment on table policy.delivery is
  'Deliveries to agents that report how their work ended, one per event and agent: what is open, and what came of it.';
comment on column policy.delivery.event is 'The RawEvent bytes until the end is known committed: a further attempt or a parked copy needs them.';
comment on column policy.delivery.attempt is 'Attempt delivered last.';
comment on column policy.delivery.deliveries is 'How often it was delivered; max_attempts is the most.';
comment on column policy.delivery.ended_offset is 'Coordinate of the record that ended it.';

create index delivery_overdue on policy.delivery (partition, overdue_at_ms) where state = 'in_progress';
create index delivery_unsettled on policy.delivery (partition) where ended_log_id is not null and event is not null;
create index delivery_event on policy.delivery (event_key) where state in ('in_progress', 'waiting');
create index waiting_event on policy.waiting (event_key);

create table policy.outcome (
  decision_id uuid not null,
  attempt int not null check (attempt >= 0),
  kind text not null check (kind in ('report', 'deadline')),
  log_id uuid not null,
  partition int not null,
  "offset" bigint not null,
  status text not null check (status in ('completed', 'failed', 'no_report')),
  effects text not null check (effects in ('', 'none', 'unknown', 'done')),
  result text not null check (result in ('completed', 'again', 'parked', 'late', 'moot')),
  code text not null,
  not_before_ms bigint,
  at_ms bigint not null,
  primary key (decision_id, attempt, kind)
);
comment on table policy.outcome is
  'What was reported of an attempt and what followed: the first report and the passing of the deadline. Never updated.';

create index outcome_coordinate on policy.outcome (log_id, partition, "offset");

create table policy.version (
  agent text not null,
  ordering_key text not null,
  kind text not null check (kind in ('number', 'time')),
  version numeric not null,
  partition int not null,
  decision_id uuid not null,
  at_ms bigint not null,
  primary key (agent, ordering_key)
) with (fillfactor = 80); -- updated in place, whenever a newer version is let through
create index version_age on policy.version (partition, at_ms);
comment on table policy.version is 'The last version of each object that was let through to each agent; times as seconds since 1970.';

drop function policy.claim(int, bigint, text[], uuid[], bigint[], bigint[], uuid, bigint, text, bigint[], uuid[], int[], text[], text[],
  text[], text[], bigint[], int[], text[], text[], uuid[], bigint[], bytea[], text[], bigint[], int[], int[], text[], bigint[], text[],
  bigint[]);
drop function policy.restore(int, bigint, uuid[], int[], text[], text[], uuid[], bigint[], text[], text[], text[], bigint[], bigint[],
  text[], int[], text[], bigint[], bigint[], int[], text[], text[], uuid[], bigint[], bytea[], boolean[], uuid[]);

-- Claims a batch: stores verdicts, decides ceilings, charges, lets deliveries wait.
--   in_partition .. in_claimed_at_ms: ownership and positions, as for weir.own
--   in_log_id: log of the batch; in_at_ms: the clock reading; in_config_version: rules in force
--   per proposal, in input order, each (decision, attempt) at most once: in_offsets .. in_events
--     in_groups: equal numbers, from 1, for equal (agent, ordering key); in_events: null when it cannot be deferred
--   in_budgets, in_window_starts: the budgets asked for, each once
--   per ceiling asked, ordered by proposal: in_ask_entries (proposal, from 1), in_ask_budgets (budget, from 1), rule, limit,
--     'deny' or 'defer', and the end of its window
--   per proposal again: in_event_keys; in_version_kinds ('number', 'time' or null) and in_versions (decimal text); in_max_attempts (null:
--     the agent does not report), in_backoff_ms, in_deadline_ms
-- Returns a single row with mine = false when the epoch is no longer the caller's (nothing is written). Else the stored verdict of
-- each proposal; its coordinate is not the one given when it was claimed from another record before.
-- An allowed proposal behind one of its group that this call defers is deferred too. One whose version is older than the last let
-- through to its agent becomes stale, before ceilings are asked; equal versions pass. All ceilings of a proposal are charged, or none.
-- Budget rows are locked in one fixed order, so that the owners of two partitions cannot deadlock.
create function policy.claim(
  in_partition int,
  in_epoch bigint,
  in_topics text[],
  in_log_ids uuid[],
  in_emitted_below bigint[],
  in_claimed_at_ms bigint[],
  in_log_id uuid,
  in_at_ms bigint,
  in_config_version text,
  in_offsets bigint[],
  in_decision_ids uuid[],
  in_attempts int[],
  in_agents text[],
  in_agent_sets text[],
  in_verdicts text[],
  in_reasons text[],
  in_not_before_ms bigint[],
  in_groups int[],
  in_tenants text[],
  in_ordering_keys text[],
  in_origin_log_ids uuid[],
  in_origin_offsets bigint[],
  in_events bytea[],
  in_budgets text[],
  in_window_starts bigint[],
  in_ask_entries int[],
  in_ask_budgets int[],
  in_ask_rules text[],
  in_ask_limits bigint[],
  in_ask_on_exhaust text[],
  in_ask_until_ms bigint[],
  in_event_keys bytea[],
  in_version_kinds text[],
  in_versions text[],
  in_max_attempts int[],
  in_backoff_ms bigint[],
  in_deadline_ms bigint[]
) returns table (
  mine boolean,
  entry int,
  inserted boolean,
  log_id uuid,
  partition int,
  "offset" bigint,
  agent text,
  agents jsonb,
  verdict text,
  reasons jsonb,
  charges jsonb,
  not_before_ms bigint,
  at_ms bigint,
  config_version text,
  override_code text,
  override_detail text,
  delivery jsonb
)
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

-- Parks deliveries that were allowed and that the agent's topic refuses; their charges become void.
--   in_decision_ids, in_attempts: parallel arrays; in_code, in_detail: why
-- Returns false when the epoch is no longer the caller's. Repeating it changes nothing.
create or replace function policy.park(
  in_partition int,
  in_epoch bigint,
  in_decision_ids uuid[],
  in_attempts int[],
  in_code text,
  in_detail text,
  in_at_ms bigint
) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

-- Deletes waiting rows whose ending verdict lies below the committed position of its input, and lets ended deliveries forget their
-- bytes by the same rule.
--   in_topics .. in_claimed_at_ms: positions known committed, as for weir.own
--   in_decision_ids: only these, or null for all of the partition number
-- Returns how many were deleted, or -1 when the epoch is no longer the caller's.
create or replace function policy.settle(
  in_partition int,
  in_epoch bigint,
  in_topics text[],
  in_log_ids uuid[],
  in_emitted_below bigint[],
  in_claimed_at_ms bigint[],
  in_decision_ids uuid[]
) returns int
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

-- Re-creates rows that Postgres lost, from decisions that were emitted.
--   per verdict: in_decision_ids .. in_config_versions
--   per charge: in_charge_entries (verdict, from 1), in_charge_budgets, in_charge_window_starts, in_charge_amounts
--   per delivery whose last emitted verdict is a deferral: in_waiting_entries (verdict, from 1) .. in_waiting_event_keys
--   in_ended, in_ended_attempts: deliveries whose last emitted verdict ended them, and its attempt
-- Returns how many rows were missing, or -1 when the epoch is no longer the caller's. Repeating it restores nothing more.
create function policy.restore(
  in_partition int,
  in_epoch bigint,
  in_decision_ids uuid[],
  in_attempts int[],
  in_agents text[],
  in_agent_sets text[],
  in_log_ids uuid[],
  in_offsets bigint[],
  in_verdicts text[],
  in_reasons text[],
  in_charges text[],
  in_not_before_ms bigint[],
  in_at_ms bigint[],
  in_config_versions text[],
  in_charge_entries int[],
  in_charge_budgets text[],
  in_charge_window_starts bigint[],
  in_charge_amounts bigint[],
  in_waiting_entries int[],
  in_waiting_tenants text[],
  in_waiting_ordering_keys text[],
  in_waiting_log_ids uuid[],
  in_waiting_offsets bigint[],
  in_waiting_events bytea[],
  in_waiting_reserved boolean[],
  in_waiting_event_keys bytea[],
  in_ended uuid[],
  in_ended_attempts int[]
) returns int
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

-- Claims a batch of reports: stores what follows from each, moves deliveries, lets failed ones wait for their next attempt.
--   in_partition .. in_claimed_at_ms: ownership and positions, as for weir.own
--   in_log_id: log of the batch; in_at_ms: the clock reading
--   per report, each (decision, attempt, kind) at most once, decided by the caller from the rows as they are: in_offsets ..
--     in_not_before_ms
-- Returns false, with nothing written, when the epoch is no longer the caller's. Rows that exist are left as they are.
create function policy.claim_outcomes(
  in_partition int,
  in_epoch bigint,
  in_topics text[],
  in_log_ids uuid[],
  in_emitted_below bigint[],
  in_claimed_at_ms bigint[],
  in_log_id uuid,
  in_at_ms bigint,
  in_offsets bigint[],
  in_decision_ids uuid[],
  in_attempts int[],
  in_kinds text[],
  in_statuses text[],
  in_effects text[],
  in_results text[],
  in_codes text[],
  in_not_before_ms bigint[]
) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

-- Notes that the passing of a deadline was produced to weir.outcomes, after it was.
-- Returns false when the epoch is no longer the caller's.
create function policy.mark_overdue(in_partition int, in_epoch bigint, in_decision_ids uuid[], in_attempts int[])
returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

-- Re-creates deliveries, reports and versions that Postgres lost, from decisions that were emitted. Call it after policy.restore.
--   per delivery, as its last emitted decision left it: in_decision_ids .. in_not_before_ms (of one that waits)
--   per report: in_outcome_ids .. in_outcome_at_ms
--   per version let through: in_version_agents .. in_version_at_ms
-- Returns how many rows were missing, or -1 when the epoch is no longer the caller's.
create function policy.restore_deliveries(
  in_partition int,
  in_epoch bigint,
  in_decision_ids uuid[],
  in_agents text[],
  in_tenants text[],
  in_ordering_keys text[],
  in_event_keys bytea[],
  in_log_ids uuid[],
  in_offsets bigint[],
  in_events bytea[],
  in_attempts int[],
  in_deliveries int[],
  in_states text[],
  in_parked_codes text[],
  in_max_attempts int[],
  in_backoff_ms bigint[],
  in_deadline_ms bigint[],
  in_overdue_at_ms bigint[],
  in_ended_log_ids uuid[],
  in_ended_offsets bigint[],
  in_not_before_ms bigint[],
  in_outcome_ids uuid[],
  in_outcome_attempts int[],
  in_outcome_kinds text[],
  in_outcome_log_ids uuid[],
  in_outcome_offsets bigint[],
  in_outcome_statuses text[],
  in_outcome_effects text[],
  in_outcome_results text[],
  in_outcome_codes text[],
  in_outcome_not_before_ms bigint[],
  in_outcome_at_ms bigint[],
  in_version_agents text[],
  in_version_ordering_keys text[],
  in_version_kinds text[],
  in_versions text[],
  in_version_ids uuid[],
  in_version_at_ms bigint[]
) returns int
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

-- Removes rows that no re-read can ask for any more: of inputs below the committed positions, judged before in_before_ms, and not of a
-- delivery that is open or has a younger verdict. Versions that were let through before go too, and calendar budgets whose window has
-- ended since: a window is a month at most.
--   in_limit: rows of each kind at most
-- Returns how many were removed, or -1 when the epoch is no longer the caller's.
create function policy.expire(in_partition int, in_epoch bigint, in_before_ms bigint, in_limit int)
returns int
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

-- Which of these events still have a delivery that is open or waits: their claims must not be forgotten yet.
create function policy.open_events(in_event_keys bytea[])
returns setof bytea
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select g.event_key from unnest(in_event_keys) as g (event_key)
  where exists (select from policy.delivery d where d.event_key = g.event_key and d.state in ('in_progress', 'waiting'))
     or exists (select from policy.waiting w where w.event_key = g.event_key)
$$;

revoke execute on all functions in schema policy from public;
grant select, insert, update, delete on policy.delivery, policy.version to weir_policy;
grant select, insert, delete on policy.outcome to weir_policy;
grant delete on policy.verdict, policy.override, policy.charge, policy.budget to weir_policy;
grant execute on all functions in schema policy to weir_policy;
grant usage on schema policy to weir_dedup;
grant execute on function policy.open_events(bytea[]) to weir_dedup;
