-- The keys of stored files that are encrypted, one each. A file whose key is deleted cannot be read any more, wherever copies of it are.

create table sluice.file_keys (
  file_ref text collate "C" not null,
  secret bytea not null,
  constraint file_keys_pkey primary key (file_ref),
  constraint file_keys_secret_check check (octet_length(secret) = 32)
);
comment on table sluice.file_keys is 'The keys of stored files that are encrypted; each is deleted before its file is.';
