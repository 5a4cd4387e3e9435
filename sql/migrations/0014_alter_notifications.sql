-- The ends of schedules' runs are told too. They may have made no job, or many.

alter table sluice.notification_subscriptions
  drop constraint notification_subscriptions_job_kinds_check,
  add constraint notification_subscriptions_job_kinds_check check (
    job_kinds <@ array['load', 'export', 'schedule'] and cardinality(job_kinds) > 0
  );
alter table sluice.notification_events
  drop constraint notification_events_job_set,
  add constraint notification_events_job_set check (
    (job_id is null) = (type = 'ping' or type like 'schedule.%')
  );
comment on table sluice.notification_events is
  'What is to be told: written in the transaction that ends the job or run, and only if somebody is to be told.';

alter table sluice.schedule_runs
  add constraint schedule_runs_notify_check check (
    notify is null
    or (jsonb_typeof(notify -> 'emails') = 'array' and jsonb_typeof(notify -> 'on') = 'array') is true
  );
comment on column sluice.schedule_runs.notify is '{emails, on}: addresses that are told if the run ends so; null: none.';
