-- Names are also given by the command line and the API.

comment on column sluice.notification_subscriptions.name is
  'Name, which is unique in the environment. Null if it has none.';
