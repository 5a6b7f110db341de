-- Dedup: who won each event key and each business key.
-- why: uniqueness is a promise of these primary keys; a claim is one call of dedup.claim.
-- locks: none on existing tables.
-- old code: safe

create schema dedup;
grant usage on schema dedup to weir_dedup;

create table dedup.claim (
  event_key bytea not null primary key check (octet_length(event_key) = 32),
  event_key_text text not null check (octet_length(event_key_text) <= 1024),
  tenant text not null,
  source text not null,
  delivery_id uuid not null,
  log_id uuid not null,
  partition int not null,
  "offset" bigint not null,
  payload_digest bytea not null,
  appended_at_ms bigint not null
);
comment on table dedup.claim is
  'One row per event key ever seen inside its window: the delivery and the coordinate it was made for. Never rewritten.';
comment on column dedup.claim.delivery_id is 'Delivery that won the key: the admission id of the event.';
comment on column dedup.claim.appended_at_ms is 'Log-append time of the winning record, milliseconds since 1970.';

create table dedup.business_claim (
  business_key bytea not null primary key check (octet_length(business_key) = 32),
  event_key bytea not null references dedup.claim (event_key),
  space text not null,
  claimed_value text not null
);
comment on table dedup.business_claim is
  'A second unique claim in a key space of the tenant: the event that holds it is let through, others are duplicates of it.';

-- Claims a batch.
--   in_partition, in_epoch, in_topics .. in_claimed_at_ms: ownership and positions, as for weir.own
--   in_log_id, and the parallel arrays: one entry per distinct event key, in offset order; business keys may be null
-- Returns a single row with mine = false when the epoch is no longer the caller's (nothing is written). Else one row per entry:
-- who holds the event key, whether this call inserted it, and who holds the business key.
-- Rows are inserted in key order, so that two partitions cannot deadlock.
create function dedup.claim(
  in_partition int,
  in_epoch bigint,
  in_topics text[],
  in_log_ids uuid[],
  in_emitted_below bigint[],
  in_claimed_at_ms bigint[],
  in_log_id uuid,
  in_offsets bigint[],
  in_event_keys bytea[],
  in_event_key_texts text[],
  in_tenants text[],
  in_sources text[],
  in_delivery_ids uuid[],
  in_payload_digests bytea[],
  in_appended_at_ms bigint[],
  in_business_keys bytea[],
  in_spaces text[],
  in_values text[]
) returns table (
  mine boolean,
  entry int,
  inserted boolean,
  delivery_id uuid,
  log_id uuid,
  partition int,
  "offset" bigint,
  payload_digest bytea,
  known_emitted boolean,
  business_event_key bytea,
  business_delivery_id uuid,
  business_log_id uuid,
  business_partition int,
  business_offset bigint
)
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

-- Re-creates claims that Postgres lost, from decisions that were emitted.
--   parallel arrays: one entry per claim; a business key is given only for its holder
-- Returns -1 when the epoch is no longer the caller's, else how many claims were missing.
create function dedup.restore(
  in_partition int,
  in_epoch bigint,
  in_event_keys bytea[],
  in_event_key_texts text[],
  in_tenants text[],
  in_sources text[],
  in_delivery_ids uuid[],
  in_log_ids uuid[],
  in_offsets bigint[],
  in_payload_digests bytea[],
  in_appended_at_ms bigint[],
  in_business_keys bytea[],
  in_spaces text[],
  in_values text[]
) returns int
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

revoke execute on all functions in schema dedup from public;
grant select, insert on dedup.claim, dedup.business_claim to weir_dedup;
grant execute on all functions in schema dedup to weir_dedup;
