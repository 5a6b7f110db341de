-- What the edge told API clients about their event keys.
-- why: a client gets one 202 per event key, and afterwards 409 with the original's delivery id. The row decides that between all
--      instances of ingest; Redis only keeps copies of `accepted` rows. Providers have no rows here.
--      publishing: someone holds a lease and is writing the event to weir.raw under this delivery id.
--      accepted:   the event is in that log, acknowledged.
--      Whoever takes over an expired lease publishes under the same delivery id, since the first holder may have published too.
-- locks: none on existing tables
-- old code: safe

create schema edge;
grant usage on schema edge to weir_ingest;

create table edge.claim (
  key_hash bytea primary key check (octet_length(key_hash) = 32),
  delivery_id uuid not null,
  digest bytea not null check (octet_length(digest) = 32),
  state text not null check (state in ('publishing', 'accepted')),
  -- The log that holds the event. `accepted` of another log counts as absent: that log's events are gone.
  log_id uuid,
  lease_until timestamptz not null,
  accepted_at timestamptz,
  -- From then on the row counts as absent and is deleted.
  keep_until timestamptz not null,
  check ((state = 'accepted') = (log_id is not null and accepted_at is not null))
) with (fillfactor = 80); -- room for the update from publishing to accepted on the same page, without touching an index
comment on table edge.claim is 'One row per event key of an API client: who publishes it, or that it is accepted.';

create index claim_keep_until on edge.claim (keep_until);

-- Claims event keys before they are published. One call per micro-batch.
--   in_keys: event keys, each at most once; in_delivery_ids, in_digests, in_keep_ms (how long a row stays): parallel arrays
--   in_log_id: the log that weir.raw is now
--   in_lease_ms: how long a claim may take to be accepted
-- Returns one row per key:
--   mine        publish under the delivery id returned, which is not the one given when an expired lease was taken over
--   accepted    in this log already, under the delivery id and with the digest returned
--   publishing  someone else's lease, that ends in lease_left_ms
-- Rows are locked in key order, so that two batches cannot wait for each other. A row that does not change is locked all the
-- same, hence found by the second statement: absence is not an answer.
create function edge.claim(
  in_keys bytea[],
  in_delivery_ids uuid[],
  in_digests bytea[],
  in_keep_ms bigint[],
  in_log_id uuid,
  in_lease_ms int
) returns table (key_hash bytea, outcome text, delivery_id uuid, digest bytea, lease_left_ms int)
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

-- Marks published events as accepted. One call per micro-batch.
--   in_keys, in_delivery_ids, in_digests: parallel arrays, each key at most once
--   in_log_id: the log they were published to
-- Returns one row per key:
--   mine        accepted by this call
--   accepted    accepted before, in this log, under the delivery id and with the digest returned
--   publishing  someone else publishes it under another delivery id
--   absent      the row was deleted meanwhile
-- Never overwrites `accepted` of the same log.
create function edge.accept(in_keys bytea[], in_delivery_ids uuid[], in_digests bytea[], in_log_id uuid)
returns table (key_hash bytea, outcome text, delivery_id uuid, digest bytea)
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

-- Ends leases whose publishing failed, so that a retry need not wait. The delivery id stays: the event may have been written.
--   in_keys, in_delivery_ids: parallel arrays
create function edge.release(in_keys bytea[], in_delivery_ids uuid[]) returns void
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  perform from edge.claim c where c.key_hash = any (in_keys) order by c.key_hash for update;
  update edge.claim c
  set lease_until = clock_timestamp()
  from unnest(in_keys, in_delivery_ids) as g (key_hash, delivery_id)
  where c.key_hash = g.key_hash and c.delivery_id = g.delivery_id and c.state = 'publishing';
end
$$;

-- Deletes rows whose time is over, at most in_limit, the oldest first. Rows in use are left for the next time.
-- Returns how many were deleted.
create function edge.expire(in_limit int) returns int
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
as $$
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
$$;

revoke execute on function edge.claim(bytea[], uuid[], bytea[], bigint[], uuid, int) from public;
revoke execute on function edge.accept(bytea[], uuid[], bytea[], uuid) from public;
revoke execute on function edge.release(bytea[], uuid[]) from public;
revoke execute on function edge.expire(int) from public;
grant select, insert, update, delete on edge.claim to weir_ingest;
grant execute on function edge.claim(bytea[], uuid[], bytea[], bigint[], uuid, int) to weir_ingest;
grant execute on function edge.accept(bytea[], uuid[], bytea[], uuid) to weir_ingest;
grant execute on function edge.release(bytea[], uuid[]) to weir_ingest;
grant execute on function edge.expire(int) to weir_ingest;
