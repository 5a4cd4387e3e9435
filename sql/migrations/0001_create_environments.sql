-- Environments (tenants) and the keys that open them. Everything else in this schema hangs on environment_id.

create table sluice.environments (
  environment_id integer generated always as identity,
  name text not null,
  app_token text not null,
  created_at timestamptz not null default now(),
  record_key uuid not null default gen_random_uuid(),
  allowed_origins text[] not null default '{}',
  export_layout text not null default 'datasets',
  constraint environments_pkey primary key (environment_id),
  constraint environments_name_key unique (name),
  constraint environments_app_token_key unique (app_token),
  constraint environments_export_layout_check check (export_layout in ('datasets', 'stream')),
  constraint environments_name_check check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  constraint environments_app_token_check check (app_token ~ '^[A-Z]{2}-[0-9A-Z]{8}$')
);
comment on table sluice.environments is 'A tenant: its profiles, loads and keys are unreachable from any other.';
comment on column sluice.environments.allowed_origins is 'Origins of the pages that may send records, such as https://app.example.com.';
comment on column sluice.environments.export_layout is 'The layout of exports that name none.';
comment on column sluice.environments.record_key is 'Secret under which records of files are digested: sluice.users.digest.';

create table sluice.environment_uses (
  environment_id integer not null,
  name text not null,
  constraint environment_uses_pkey primary key (environment_id, name),
  constraint environment_uses_environment_fkey foreign key (environment_id) references sluice.environments
);
comment on table sluice.environment_uses is
  'The capabilities that an environment has begun to use. A row is added before the first use, and never removed.';

-- Ends a statement that was composed before the environment began to use a capability.
create function sluice.refuse_unknown_use(name text) returns boolean
  language plpgsql strict
as $$
begin
  raise exception 'the environment uses % meanwhile', name using errcode = '40001', constraint = 'environment_uses_pkey';
end
$$;

create table sluice.api_keys (
  key_id text not null,
  environment_id integer not null,
  label text not null,
  digest bytea not null,
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  constraint api_keys_pkey primary key (key_id),
  constraint api_keys_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint api_keys_digest_check check (octet_length(digest) = 32),
  constraint api_keys_scopes_check check (
    (scopes <@ array['ingest', 'import', 'export', 'read', 'delete'] and cardinality(scopes) > 0) or scopes = array['browser']
  )
);
comment on table sluice.api_keys is 'Only the SHA-256 digest of a key is kept.';
comment on column sluice.api_keys.last_used_at is 'To the minute; null: never.';
create index api_keys_environment_idx on sluice.api_keys (environment_id);
