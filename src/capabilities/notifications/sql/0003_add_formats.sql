-- The format in which a webhook gets events: that of programs, or messages of a chat.

alter table sluice.notification_subscriptions
  add column format text not null default 'standard',
  add constraint notification_subscriptions_format_check check (
    format = 'standard' or (channel = 'webhook' and format in ('slack', 'teams'))
  ),
  drop constraint notification_subscriptions_secret_set,
  add constraint notification_subscriptions_secret_set check (
    (secret is not null) = (channel = 'webhook' and format = 'standard' and removed_at is null)
  );
comment on column sluice.notification_subscriptions.format is
  'What a webhook gets. Chats check no signature, so only standard has a secret: the URL of a chat is secret itself.';
