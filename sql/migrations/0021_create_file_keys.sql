-- The keys of stored files that are encrypted, one each. A file whose key is deleted cannot be read any more, wherever copies of it are.

create table sluice.file_keys (
  file_ref text collate "C" not null,
  secret bytea not null,
  key_id text,
  constraint file_keys_pkey primary key (file_ref),
  constraint file_keys_secret_check check (octet_length(secret) = case when key_id is null then 32 else 60 end)
);
comment on table sluice.file_keys is 'The keys of stored files that are encrypted; each is deleted before its file is.';
comment on column sluice.file_keys.key_id is 'The key in PERSONAL_KEYS that the secret is encrypted under; null: none was set.';
