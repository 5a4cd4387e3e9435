-- Sign-in by OpenID Connect: who may do what, and the sessions that a provider vouches for.

create table sluice.access_grants (
  environment_id integer not null,
  key text not null,
  claim text not null,
  value text not null,
  scopes text[] not null,
  constraint access_grants_pkey primary key (environment_id, key),
  constraint access_grants_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint access_grants_scopes_check check (
    cardinality(scopes) > 0 and scopes <@ array['ingest', 'import', 'export', 'read', 'delete']
  )
);
comment on table sluice.access_grants is 'Scopes that people with a claim have in an environment, from the definitions.';

create table sluice.oidc_sessions (
  session_id text not null,
  client text not null,
  fixed_claims jsonb not null,
  live_claims jsonb not null,
  tokens bytea not null,
  checked_at timestamptz not null default now(),
  check_until timestamptz not null default now(),
  constraint oidc_sessions_pkey primary key (session_id),
  constraint oidc_sessions_session_fkey foreign key (session_id) references sluice.console_sessions on delete cascade
);
comment on table sluice.oidc_sessions is 'What the provider says of the person of a session.';
comment on column sluice.oidc_sessions.client is 'Issuer and client ID of the sign-in: the session ends when the settings change.';
comment on column sluice.oidc_sessions.fixed_claims is 'Claims of the ID token that the provider does not give again.';
comment on column sluice.oidc_sessions.live_claims is 'Claims that the provider gave when it was last asked.';
comment on column sluice.oidc_sessions.tokens is
  'Access token and ID token, encrypted under the cookie of the session, which only the browser has.';
comment on column sluice.oidc_sessions.check_until is 'Until then, one request has the turn to ask the provider again.';

create table sluice.oidc_used_states (
  digest bytea not null,
  expires_at timestamptz not null,
  constraint oidc_used_states_pkey primary key (digest),
  constraint oidc_used_states_digest_check check (octet_length(digest) = 32)
);
comment on table sluice.oidc_used_states is 'Sign-ins that came back from the provider: none comes back twice.';
