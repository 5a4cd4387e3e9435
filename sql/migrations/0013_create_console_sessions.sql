-- Who is signed in to the console. A browser holds a secret in a cookie; here is its digest, and the key that it stands for.

create table sluice.console_sessions (
  session_id text not null,
  digest bytea not null,
  environment_id integer not null,
  holder text not null,
  key_id text,
  mark bytea,
  client text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  ended_at timestamptz,
  constraint console_sessions_pkey primary key (session_id),
  constraint console_sessions_digest_key unique (digest),
  constraint console_sessions_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint console_sessions_key_fkey foreign key (key_id) references sluice.api_keys on delete cascade,
  constraint console_sessions_digest_check check (octet_length(digest) = 32),
  constraint console_sessions_holder_check check (
    case holder
      when 'key' then key_id is not null and mark is null
      when 'static_key' then key_id is null and mark is not null
      when 'admin' then key_id is null and mark is not null
      when 'link' then key_id is null and mark is null
      else false
    end
  )
);
comment on table sluice.console_sessions is 'Sessions of the console. Only the SHA-256 digest of a cookie is kept.';
comment on column sluice.console_sessions.holder is
  'The credential of the sign-in: an API key, API_KEY, ADMIN_KEY, or a one-time link of the command line.';
comment on column sluice.console_sessions.mark is
  'HMAC of API_KEY or ADMIN_KEY under the cookie: the session ends when the setting changes, and nobody can guess at it from here.';
create index console_sessions_listing_idx on sluice.console_sessions (environment_id, created_at desc);

create table sluice.console_links (
  digest bytea not null,
  environment_id integer not null,
  expires_at timestamptz not null,
  constraint console_links_pkey primary key (digest),
  constraint console_links_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint console_links_digest_check check (octet_length(digest) = 32)
);
comment on table sluice.console_links is 'One-time sign-in links, by the digest of their token; gone when used.';
