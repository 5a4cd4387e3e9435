-- A person is one user, known by several ids. An alias belongs to a person from the moment it is made: whoever writes a record looks the
-- id up here. What was stored under it before moves with a load of the type `join`.
create table sluice.aliases (
  environment_id integer not null,
  alias text collate "C" not null,
  user_id text collate "C" not null,
  given_to text collate "C" not null,
  load_id bigint not null,
  created_at timestamptz not null default now(),
  constraint aliases_pkey primary key (environment_id, alias),
  constraint aliases_user_is_another check (alias <> user_id)
);
comment on table sluice.aliases is 'Ids that belong to another user. user_id is never an alias itself.';
comment on column sluice.aliases.given_to is 'The user that it was given to, who may have become an alias since. Undoing that gives it back.';
comment on column sluice.aliases.load_id is 'The join that moves what was stored under the alias.';
create index aliases_user_idx on sluice.aliases (environment_id, user_id, alias);
create index aliases_given_to_idx on sluice.aliases (environment_id, given_to);
create index aliases_load_idx on sluice.aliases (load_id);

-- The person whom an id belongs to.
create function sluice.person_of(environment integer, id text) returns text
  language sql stable parallel safe
  return coalesce((select user_id from sluice.aliases where environment_id = environment and alias = id), id);

-- Refuses a record whose id was looked up before it became an alias; its writer looks it up again.
create function sluice.refuse_alias(alias text) returns text
  language plpgsql strict
as $$
begin
  raise exception 'an id has become an alias' using errcode = '40001', constraint = 'aliases_pkey';
end
$$;
