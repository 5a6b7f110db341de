-- Policy: verdicts, the budget ledger and deliveries that wait.
-- why: a verdict belongs to one input coordinate and attempt and is never rewritten; waiting rows and charges are written only from
--      verdicts that the same call inserted, so a re-read, a repeat or a former owner changes nothing.
-- locks: none on existing tables.
-- old code: safe

create schema policy;
grant usage on schema policy to weir_policy;

create table policy.verdict (
  decision_id uuid not null,
  attempt int not null check (attempt >= 0),
  agent text not null,
  agents jsonb not null,
  log_id uuid not null,
  partition int not null,
  "offset" bigint not null,
  verdict text not null check (verdict in ('allow', 'defer', 'hold', 'deny', 'stale', 'parked', 'unrouted')),
  reasons jsonb not null,
  charges jsonb not null,
  not_before_ms bigint,
  at_ms bigint not null,
  config_version text not null,
  primary key (decision_id, attempt)
);
comment on table policy.verdict is
  'The answer given to one input record for one agent. Attempt 0 is the event itself, attempt n its n-th release. Never updated.';
comment on column policy.verdict.agent is 'Empty when no route takes the event.';
comment on column policy.verdict.at_ms is 'The one clock reading of the attempt, milliseconds since 1970.';

create index verdict_coordinate on policy.verdict (log_id, partition, "offset");

create table policy.override (
  decision_id uuid not null,
  attempt int not null,
  code text not null,
  detail text not null,
  primary key (decision_id, attempt),
  foreign key (decision_id, attempt) references policy.verdict (decision_id, attempt)
);
comment on table policy.override is
  'Allowed deliveries that the agent''s topic refused: parked instead. Beside the verdict, which is never rewritten.';

create table policy.budget (
  budget text not null,
  window_start_ms bigint not null,
  used bigint not null check (used >= 0),
  primary key (budget, window_start_ms)
) with (fillfactor = 50); -- updated by nearly every batch: room on the same page
comment on table policy.budget is 'What is used of each ceiling in each calendar window: the sum of its charges that are not void.';

create table policy.charge (
  charge_id uuid not null,
  budget text not null,
  window_start_ms bigint not null,
  amount bigint not null check (amount > 0),
  attempt int not null,
  voided_at_ms bigint,
  primary key (charge_id, budget)
);
comment on table policy.charge is 'The ledger: one entry per delivery and ceiling. The charge id is the decision id.';

create table policy.waiting (
  decision_id uuid not null primary key,
  agent text not null,
  ordering_key text not null,
  tenant text not null,
  partition int not null,
  log_id uuid not null,
  "offset" bigint not null,
  event bytea not null,
  not_before_ms bigint,
  rate_reserved boolean not null,
  next_attempt int not null check (next_attempt > 0),
  released_attempt int not null default 0,
  released_at_ms bigint,
  ended_attempt int
);
comment on table policy.waiting is
  'Deliveries from their first deferral until the transaction that emits or ends them is known committed. '
  'Log id and offset are those of the event, not of its releases.';
comment on column policy.waiting.not_before_ms is 'Null while it only waits behind another delivery of its agent and ordering key.';
comment on column policy.waiting.ended_attempt is 'Attempt whose verdict ended the wait; the row stays until that is known committed.';

create index waiting_order on policy.waiting (partition, agent, ordering_key, "offset");

-- Claims a batch: stores verdicts, decides ceilings, charges, lets deliveries wait.
--   in_partition .. in_claimed_at_ms: ownership and positions, as for weir.own
--   in_log_id: log of the batch; in_at_ms: the clock reading; in_config_version: rules in force
--   per proposal, in input order, each (decision, attempt) at most once: in_offsets .. in_events
--     in_groups: equal numbers, from 1, for equal (agent, ordering key); in_events: null when it cannot be deferred
--   in_budgets, in_window_starts: the budgets asked for, each once
--   per ceiling asked, ordered by proposal: in_ask_entries (proposal, from 1), in_ask_budgets (budget, from 1), rule, limit,
--     'deny' or 'defer', and the end of its window
-- Returns a single row with mine = false when the epoch is no longer the caller's (nothing is written). Else the stored verdict of
-- each proposal; its coordinate is not the one given when it was claimed from another record before.
-- An allowed proposal behind one of its group that this call defers is deferred too. All ceilings of a proposal are charged, or none.
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
  in_ask_until_ms bigint[]
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
  override_detail text
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
begin
  if not weir.own('policy', in_partition, in_epoch, in_topics, in_log_ids, in_emitted_below, in_claimed_at_ms) then
    return query select false, null::int, null::boolean, null::uuid, null::int, null::bigint, null::text, null::jsonb,
      null::text, null::jsonb, null::jsonb, null::bigint, null::bigint, null::text, null::text, null::text;
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

  blocked := array_fill(false, array[greatest(1, coalesce((select max(g) from unnest(in_groups) g), 1))]);
  charges := array_fill('[]'::jsonb, array[greatest(1, total)]);

  for i in 1 .. total loop
    first_ask := ask;
    while ask <= ask_total and in_ask_entries[ask] = i loop
      ask := ask + 1;
    end loop;
    continue when known[i];

    if verdicts[i] = 'allow' and blocked[in_groups[i]] then
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
      blocked[in_groups[i]] := true;
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
                                   rate_reserved, next_attempt)
  select in_decision_ids[i], in_agents[i], in_ordering_keys[i], in_tenants[i], in_partition, in_origin_log_ids[i],
         in_origin_offsets[i], in_events[i], not_before[i], reasons[i] @> '[{"code": "slot_reserved"}]', in_attempts[i] + 1
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

  return query
  select true, g.place::int, g.place = any (won), v.log_id, v.partition, v."offset", v.agent, v.agents, v.verdict, v.reasons,
         v.charges, v.not_before_ms, v.at_ms, v.config_version, o.code, o.detail
  from unnest(in_decision_ids, in_attempts) with ordinality as g (decision_id, attempt, place)
  join policy.verdict v on v.decision_id = g.decision_id and v.attempt = g.attempt
  left join policy.override o on o.decision_id = g.decision_id and o.attempt = g.attempt
  order by g.place;
end
$$;

-- Parks deliveries that were allowed and that the agent's topic refuses; their charges become void.
--   in_decision_ids, in_attempts: parallel arrays; in_code, in_detail: why
-- Returns false when the epoch is no longer the caller's. Repeating it changes nothing.
create function policy.park(
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

-- Marks attempts as released, after they were produced.
--   in_decision_ids, in_attempts: parallel arrays
-- A row that has moved on to another attempt meanwhile is left alone: only *that attempt* is marked.
-- Returns false when the epoch is no longer the caller's.
create function policy.mark_released(in_partition int, in_epoch bigint, in_decision_ids uuid[], in_attempts int[])
returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

-- Deletes waiting rows whose ending verdict lies below the committed position of its input.
--   in_topics .. in_claimed_at_ms: positions known committed, as for weir.own
--   in_decision_ids: only these, or null for all of the partition number
-- Returns how many were deleted, or -1 when the epoch is no longer the caller's.
create function policy.settle(
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
  return deleted;
end
$$;

-- Re-creates rows that Postgres lost, from decisions that were emitted.
--   per verdict: in_decision_ids .. in_config_versions
--   per charge: in_charge_entries (verdict, from 1), in_charge_budgets, in_charge_window_starts, in_charge_amounts
--   per delivery whose last emitted verdict is a deferral: in_waiting_entries (verdict, from 1) .. in_waiting_reserved
--   in_ended: deliveries whose last emitted verdict ended them
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
  in_ended uuid[]
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
                                     rate_reserved, next_attempt)
    select in_decision_ids[g.entry], in_agents[g.entry], g.ordering_key, g.tenant, in_partition, g.log_id, g.at_offset, g.event,
           in_not_before_ms[g.entry], g.rate_reserved, in_attempts[g.entry] + 1
    from unnest(in_waiting_entries, in_waiting_tenants, in_waiting_ordering_keys, in_waiting_log_ids, in_waiting_offsets,
                in_waiting_events, in_waiting_reserved)
      as g (entry, tenant, ordering_key, log_id, at_offset, event, rate_reserved)
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

  delete from policy.waiting w where w.partition = in_partition and w.decision_id = any (in_ended);
  return cardinality(won) + waiting;
end
$$;

revoke execute on all functions in schema policy from public;
grant select, insert on policy.verdict, policy.override to weir_policy;
grant select, insert, update on policy.budget, policy.charge to weir_policy;
grant select, insert, update, delete on policy.waiting to weir_policy;
grant execute on all functions in schema policy to weir_policy;
