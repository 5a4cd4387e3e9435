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

create table sluice.load_rules (
  load_id bigint not null,
  environment_id integer not null,
  version integer not null,
  constraint load_rules_pkey primary key (load_id),
  constraint load_rules_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint load_rules_version_fkey foreign key (environment_id, version) references sluice.rules
);
comment on table sluice.load_rules is 'The rules that loads were accepted with; loads without a row: there were none.';

create table sluice.load_findings (
  load_id bigint not null,
  entity text not null,
  property text not null,
  rule text not null,
  otherwise text not null,
  records bigint not null,
  constraint load_findings_pkey primary key (load_id, entity, property, rule),
  constraint load_findings_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint load_findings_records_check check (records > 0)
);
comment on table sluice.load_findings is 'How many records of a load broke a rule without being refused.';
comment on column sluice.load_findings.property is 'Empty: the name of the event.';
