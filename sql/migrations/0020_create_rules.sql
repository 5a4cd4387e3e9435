-- What the records of an environment must hold. Versions are kept: a load keeps the one that it was accepted with.

create table sluice.rules (
  environment_id integer not null,
  version integer not null,
  document jsonb not null,
  applied_at timestamptz not null default now(),
  applied_by text,
  constraint rules_pkey primary key (environment_id, version),
  constraint rules_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint rules_version_check check (version > 0),
  constraint rules_document_check check (jsonb_typeof(document) = 'object')
);
comment on table sluice.rules is 'The versions of the rules of environments; the last one counts.';
comment on column sluice.rules.document is 'What the file says: docs/schemas/rules.schema.json.';
comment on column sluice.rules.applied_by is 'The id of the API key; null: the command line.';

alter table sluice.loads add constraint loads_rules_fkey
  foreign key (environment_id, rules_version) references sluice.rules;
