-- Sessions of people who sign in by another way than a key or a link, and the jobs of these people.

alter table sluice.console_sessions
  add column subject text,
  add constraint console_sessions_subject_check check (char_length(subject) between 1 and 300),
  drop constraint console_sessions_holder_check,
  add constraint console_sessions_holder_check check (
    case holder
      when 'key' then key_id is not null and mark is null and subject is null
      when 'static_key' then key_id is null and mark is not null and subject is null
      when 'admin' then key_id is null and mark is not null and subject is null
      when 'link' then key_id is null and mark is null and subject is null
      else holder ~ '^[a-z]{1,20}$' and key_id is null and mark is null and subject is not null
    end
  );
comment on column sluice.console_sessions.holder is
  'The credential of the sign-in: an API key, API_KEY, ADMIN_KEY, a one-time link of the command line, or another way.';
comment on column sluice.console_sessions.subject is 'The person who signed in by another way; null for keys and links.';

alter table sluice.loads
  drop constraint loads_origin_check,
  add constraint loads_origin_check check (origin in ('api_key', 'person', 'schedule', 'inbox', 'command_line'));
alter table sluice.exports
  drop constraint exports_origin_check,
  add constraint exports_origin_check check (origin in ('api_key', 'person', 'schedule', 'inbox', 'command_line'));
alter table sluice.deletions
  drop constraint deletions_origin_check,
  add constraint deletions_origin_check check (origin in ('api_key', 'person', 'schedule', 'inbox', 'command_line'));
