-- How files are loaded, kept under a name: a load names it in place of a map, and inspections offer it for files with the same header.

create table sluice.mappings (
  environment_id integer not null,
  mapping_name text not null,
  entity text not null,
  column_map jsonb not null,
  format text,
  source_options jsonb not null,
  column_names jsonb,
  header_sha256 bytea,
  saved_at timestamptz not null default now(),
  last_used_at timestamptz,
  constraint mappings_pkey primary key (environment_id, mapping_name),
  constraint mappings_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint mappings_entity_check check (entity in ('auto', 'users', 'companies')),
  constraint mappings_header_has_digest check ((column_names is null) = (header_sha256 is null))
);
comment on table sluice.mappings is 'Saved mappings: how files are loaded, under a name.';
comment on column sluice.mappings.column_map is 'Their header → our name.';
comment on column sluice.mappings.source_options is 'How the files are written, in the words of whoever saved it.';
comment on column sluice.mappings.column_names is 'The columns of the files that it is offered for; null: of none.';
comment on column sluice.mappings.header_sha256 is 'The same for the same columns, in whatever order.';
comment on column sluice.mappings.last_used_at is 'When a load was last accepted with it; null: never.';
create index mappings_header_idx on sluice.mappings (environment_id, header_sha256);
