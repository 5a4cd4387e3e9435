-- Who is notified of the end of jobs, what is to be notified, and how far the telling is.

create table sluice.notification_subscriptions (
  subscription_id uuid not null,
  environment_id integer not null,
  channel text not null,
  target text not null,
  outcomes text[] not null,
  job_kinds text[] not null,
  secret text,
  previous_secret text,
  previous_secret_until timestamptz,
  created_at timestamptz not null default now(),
  disabled_at timestamptz,
  disabled_reason text,
  removed_at timestamptz,
  constraint notification_subscriptions_pkey primary key (subscription_id),
  constraint notification_subscriptions_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint notification_subscriptions_channel_check check (channel in ('webhook', 'email')),
  constraint notification_subscriptions_outcomes_check check (
    outcomes <@ array['completed', 'completed_with_rejects', 'held', 'failed', 'cancelled'] and cardinality(outcomes) > 0
  ),
  constraint notification_subscriptions_job_kinds_check check (
    job_kinds <@ array['load', 'export', 'schedule'] and cardinality(job_kinds) > 0
  ),
  constraint notification_subscriptions_secret_set check (
    (secret is not null) = (channel = 'webhook' and removed_at is null)
  ),
  constraint notification_subscriptions_secret_check check (secret ~ '^whsec_[A-Za-z0-9+/]{43}=$'),
  constraint notification_subscriptions_previous_check check (
    (previous_secret is not null) = (previous_secret_until is not null)
  ),
  constraint notification_subscriptions_disabled_check check ((disabled_reason is not null) = (disabled_at is not null))
);
comment on table sluice.notification_subscriptions is
  'Receivers that are notified of the end of an environment''s jobs. A removed one stays, without its secrets, for its deliveries.';
comment on column sluice.notification_subscriptions.secret is
  'It signs webhooks, so it is stored as it is. Shown once, when it is made.';
create index notification_subscriptions_environment_idx on sluice.notification_subscriptions (environment_id);

create table sluice.notification_events (
  event_id uuid not null,
  environment_id integer not null,
  type text not null,
  job_id uuid,
  body text not null,
  created_at timestamptz not null default now(),
  constraint notification_events_pkey primary key (event_id),
  constraint notification_events_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint notification_events_job_set check (
    (job_id is null) = (type in ('ping', 'file.refused') or type like 'schedule.%')
  )
);
comment on table sluice.notification_events is
  'Events to notify of: written in the transaction that ends the job or run, or refuses a file, if there is a receiver.';
comment on column sluice.notification_events.body is 'The JSON that webhooks carry, the same bytes for every attempt.';
create index notification_events_created_idx on sluice.notification_events (created_at);
create index notification_events_job_idx on sluice.notification_events (job_id) where job_id is not null;

create table sluice.notification_deliveries (
  delivery_id bigint generated always as identity,
  public_id uuid not null,
  event_id uuid not null,
  subscription_id uuid,
  channel text not null,
  target text not null,
  state text not null default 'pending',
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  last_attempt_at timestamptz,
  last_took_ms integer,
  last_status integer,
  last_error text,
  delivered_at timestamptz,
  constraint notification_deliveries_pkey primary key (delivery_id),
  constraint notification_deliveries_public_key unique (public_id),
  constraint notification_deliveries_event_fkey foreign key (event_id)
    references sluice.notification_events on delete cascade,
  constraint notification_deliveries_subscription_fkey foreign key (subscription_id)
    references sluice.notification_subscriptions,
  constraint notification_deliveries_channel_check check (channel in ('webhook', 'email')),
  constraint notification_deliveries_webhook_subscribed check (channel = 'email' or subscription_id is not null),
  constraint notification_deliveries_state_check check (state in ('pending', 'delivered', 'dead')),
  constraint notification_deliveries_attempts_check check (attempts >= 0),
  constraint notification_deliveries_delivered_check check (state <> 'delivered' or delivered_at is not null),
  constraint notification_deliveries_error_check check (length(last_error) <= 1000)
);
comment on table sluice.notification_deliveries is
  'One event for one receiver. While it is pending, a task of the kind delivery says when it is due and who sends it.';
comment on column sluice.notification_deliveries.delivery_id is
  'The subject of its task. It counts over all environments, so nobody is shown it: public_id is.';
comment on column sluice.notification_deliveries.attempts is 'The attempts that were begun, also before a replay.';
comment on column sluice.notification_deliveries.subscription_id is 'The subscription; null if the job itself named the address.';
create index notification_deliveries_event_idx on sluice.notification_deliveries (event_id);
create unique index notification_deliveries_address_key on sluice.notification_deliveries (event_id, lower(target))
where channel = 'email';
create index notification_deliveries_pending_idx on sluice.notification_deliveries (delivery_id) where state = 'pending';
create index notification_deliveries_subscription_idx on sluice.notification_deliveries (subscription_id);
create index notification_deliveries_dead_idx on sluice.notification_deliveries (delivery_id) where state = 'dead';

create table sluice.notification_attempts (
  delivery_id bigint not null,
  attempt integer not null,
  begun_at timestamptz not null,
  took_ms integer not null,
  status integer,
  error text,
  constraint notification_attempts_pkey primary key (delivery_id, attempt),
  constraint notification_attempts_delivery_fkey foreign key (delivery_id)
    references sluice.notification_deliveries on delete cascade,
  constraint notification_attempts_error_check check (length(error) <= 1000)
);
comment on table sluice.notification_attempts is 'The answer to each attempt at a delivery; an attempt that was cut short has no row.';
