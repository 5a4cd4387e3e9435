-- Persons who were deleted and are kept out. Of each id a keyed hash is kept: whoever has the database can try ids, and list none.

create table sluice.suppression_keys (
  environment_id integer not null,
  secret bytea not null,
  constraint suppression_keys_pkey primary key (environment_id),
  constraint suppression_keys_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint suppression_keys_secret_length check (octet_length(secret) = 32)
);
comment on table sluice.suppression_keys is
  'The secret by which an environment hashes suppressed ids. Without a row, no id of the environment is looked up.';

create table sluice.suppressions (
  environment_id integer not null,
  id_hash bytea not null,
  suppressed_at timestamptz not null default now(),
  constraint suppressions_pkey primary key (environment_id, id_hash),
  constraint suppressions_key_fkey foreign key (environment_id) references sluice.suppression_keys,
  constraint suppressions_hash_length check (octet_length(id_hash) = 32)
);
comment on table sluice.suppressions is 'Ids of users whose records are refused. A deletion adds them.';

-- The secret has a fixed length, so two ids never hash the same bytes; nobody without it can tell a hash from a random one.
create function sluice.id_hash(secret bytea, id text) returns bytea
  language sql stable strict parallel safe
  return sha256(secret || convert_to(id, 'UTF8'));

-- Refuses a record of a suppressed person.
create function sluice.refuse_suppressed(id_hash bytea) returns text
  language plpgsql strict
as $$
begin
  raise exception 'the person was deleted and is kept out' using errcode = '23000', constraint = 'suppressions_pkey';
end
$$;
