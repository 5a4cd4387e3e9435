-- Names of the subscriptions that a file declares.

alter table sluice.notification_subscriptions
add column name text,
add constraint notification_subscriptions_name_check check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$');
comment on column sluice.notification_subscriptions.name is
  'Name in the file that declares it. Null if the command line, the API or the console made it.';
create unique index notification_subscriptions_name_key on sluice.notification_subscriptions (environment_id, name)
where removed_at is null;
