-- The request that made a job, under the id that its answer bore: what the workers write into their logs.

alter table sluice.loads
  add column request_id text,
  add constraint loads_request_id_check check (length(request_id) <= 128);
comment on column sluice.loads.request_id is 'Of the HTTP request that it came by; null if it came another way.';

alter table sluice.exports
  add column request_id text,
  add constraint exports_request_id_check check (length(request_id) <= 128);
comment on column sluice.exports.request_id is 'Of the HTTP request that it came by; null if it came another way.';

alter table sluice.deletions
  add column request_id text,
  add constraint deletions_request_id_check check (length(request_id) <= 128);
comment on column sluice.deletions.request_id is 'Of the HTTP request that it came by; null if it came another way.';
