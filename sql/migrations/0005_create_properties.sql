-- What the data has shown: the names that properties and events bear.

create table sluice.properties (
  property_id integer generated always as identity,
  environment_id integer not null,
  entity text not null,
  key text collate "C" not null,
  display_name text not null,
  data_type text not null,
  is_auto_property boolean not null default false,
  created_at timestamptz not null default now(),
  constraint properties_pkey primary key (property_id),
  constraint properties_key_key unique (environment_id, entity, key),
  constraint properties_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint properties_entity_check check (entity in ('users', 'companies', 'events', 'event_names')),
  constraint properties_data_type_check check (data_type in ('string', 'numeric', 'boolean', 'date'))
);
comment on table sluice.properties is 'Every property that a user, a company or an event has ever had.';
comment on column sluice.properties.entity is 'What bears the name; event_names: it is what an event was tracked under.';
