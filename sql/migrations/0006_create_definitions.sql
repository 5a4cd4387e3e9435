-- What the operator defines in a definitions file, and the lookups list. The file names an item by a key, so that its id stays
-- while everything else about it may change. Ids of removed items are not given again.

create table sluice.segments (
  segment_id integer generated always as identity,
  environment_id integer not null,
  key text collate "C" not null,
  title text not null,
  usage text not null,
  category text not null,
  is_hidden boolean not null,
  is_protected boolean not null,
  status text not null,
  made_by text not null default 'file',
  definition json not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint segments_pkey primary key (segment_id),
  constraint segments_key_key unique (environment_id, key),
  constraint segments_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint segments_key_check check (key <> ''),
  constraint segments_made_by_check check (made_by in ('file', 'api')),
  constraint segments_definition_check check (json_typeof(definition) = 'object')
);
comment on table sluice.segments is 'Groups of users that exports can be narrowed to.';
comment on column sluice.segments.key is 'The name of the item in the definitions file.';
comment on column sluice.segments.made_by is 'file: only the definitions file changes it; api: a file that lacks it leaves it alone.';
comment on column sluice.segments.definition is 'The rule of membership, in the order of the file: docs/schemas/segment.schema.json.';

create table sluice.surveys (
  survey_id integer generated always as identity,
  environment_id integer not null,
  key text collate "C" not null,
  title text not null,
  platform text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint surveys_pkey primary key (survey_id),
  constraint surveys_key_key unique (environment_id, key),
  constraint surveys_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint surveys_key_check check (key <> '')
);
comment on table sluice.surveys is 'Surveys that users are asked.';

create table sluice.survey_modules (
  module_id integer generated always as identity,
  survey_id integer not null,
  key text collate "C" not null,
  position integer not null,
  type text not null,
  question text not null,
  constraint survey_modules_pkey primary key (module_id),
  constraint survey_modules_key_key unique (survey_id, key),
  -- Deferrable, so that it is looked at when a statement that swaps two of them is through.
  constraint survey_modules_position_key unique (survey_id, position) deferrable,
  constraint survey_modules_survey_fkey foreign key (survey_id) references sluice.surveys on delete cascade,
  constraint survey_modules_key_check check (key <> ''),
  constraint survey_modules_position_check check (position > 0)
);
comment on table sluice.survey_modules is 'The questions of a survey.';

create table sluice.titled_items (
  item_id integer generated always as identity,
  environment_id integer not null,
  kind text not null,
  key text collate "C" not null,
  title text not null,
  type text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint titled_items_pkey primary key (item_id),
  constraint titled_items_key_key unique (environment_id, kind, key),
  constraint titled_items_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint titled_items_kind_check check (kind in ('embeds', 'flows', 'banners', 'spotlights')),
  constraint titled_items_key_check check (key <> ''),
  constraint titled_items_embed_type_check check (kind <> 'embeds' or type in ('banner', 'card'))
);
comment on table sluice.titled_items is 'Items that the lookups list by id and title: embeds (banners and cards), flows, banners, spotlights.';

create table sluice.keyed_items (
  environment_id integer not null,
  kind text not null,
  key text collate "C" not null,
  display_name text not null,
  data_type text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint keyed_items_pkey primary key (environment_id, kind, key),
  constraint keyed_items_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint keyed_items_kind_check check (kind in ('resource_center_modules', 'checklists', 'features')),
  constraint keyed_items_key_check check (key <> '')
);
comment on table sluice.keyed_items is 'Items that the lookups list by key alone: resource center modules, checklists, features.';
