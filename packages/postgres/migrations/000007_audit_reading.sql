-- Pages of the audit store are read in the order of an index, causes are found by one, and headers can be read in SQL.
-- why: audit.messages hides no row, so its barrier protected nothing, but kept each page from using an index: with 120,000 messages a
--      page of 100 took 55 ms instead of 0.4 ms, growing with the store. What an event led to is found by its cause.
-- locks: ACCESS EXCLUSIVE on the view for a moment; SHARE on audit.message and its partitions while the index is built (landing waits)
-- old code: safe

alter view audit.messages reset (security_barrier);

create index message_cause on audit.message (cause) where cause is not null;
-- Messages of no event (an action that no event began) are few: among the many of a run or subject they need an index of their own.
create index message_loose_run on audit.message (run, leaf_index) where event_key is null and run is not null;
create index message_loose_subject on audit.message (subject, leaf_index) where event_key is null and subject is not null;

-- Reads the header list of a message. A name that cannot be text (invalid UTF-8, NUL) is shown with escapes; values are bytes.
-- parameters: packed, the column audit.messages.headers
create function audit.headers(packed bytea) returns table (ordinal int, name text, value bytea)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
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
$$;
comment on function audit.headers(bytea) is 'The header list of a message: name and value bytes, in their order; names may repeat.';

revoke execute on function audit.headers(bytea) from public;
grant execute on function audit.headers(bytea) to weir_audit_reader;
