import { type Field, maybe, optional } from '../../operator-file/field.ts';
import { objectOf } from '../../operator-file/object-field.ts';
import { flag, text } from '../../operator-file/scalar-fields.ts';
import { fillInAnything, placeholderProblem } from '../placeholders.ts';
import type { FilesDefinition, HttpDefinition, PostgresDefinition, S3Definition } from '../schedule.ts';
import { checkedText, duration, secretText, texts } from './text-fields.ts';

const maxQueryChars = 20_000;

export const filesField: Field<FilesDefinition> = mapped(
  objectOf('files', 'Files of this machine.', {
    pattern: checkedText(
      {
        maxChars: 1_000,
        description: 'Path with *, ?, [a-z] and ** (any depth of folders), below SCHEDULES_LOCAL_ROOTS.',
      },
      (value) => (value.split(/[\\/]/).includes('..') ? 'must not hold ..' : null),
    ),
  }),
  ({ pattern }) => ({ kind: 'files', pattern }),
);

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
/** What the request itself is made of. */
const ownHeaders = new Set(
  [
    'host',
    'connection',
    'content-length',
    'transfer-encoding',
    'upgrade',
    'te',
    'trailer',
    'expect',
    'accept-encoding',
  ].concat(['if-none-match', 'if-modified-since', 'range']),
);

const http = objectOf('http', 'A file that a web server has.', {
  url: secretText({ maxChars: 4_000, description: 'https://…; may hold ${env:SCHEDULE_…}.' }),
  headers: optional(
    texts(
      'Headers of the request.',
      secretText({ maxChars: 8_000, description: 'May hold ${env:SCHEDULE_…}.' }),
      (name) => {
        if (!headerName.test(name)) return 'is no name of a header';
        return ownHeaders.has(name.toLowerCase()) ? 'is set by sluice itself' : null;
      },
    ),
    {},
  ),
  allow_http: optional(flag('Unencrypted http:// too.'), false),
  allow_private: optional(
    flag(
      'Addresses of private networks and of this machine too; SCHEDULES_ALLOW_PRIVATE must allow it as well.',
    ),
    false,
  ),
});

export const httpField: Field<HttpDefinition> = {
  schema: http.schema,
  read(node, problems) {
    const value = http.read(node, problems);
    if (value === undefined || node.kind !== 'object') return undefined;
    const wrong = urlProblem(value.url, value.allow_http);
    if (wrong !== null) {
      const at = node.members.find(({ name }) => name === 'url')?.value ?? node;
      problems.note(at, at.path, wrong);
      return undefined;
    }
    return {
      kind: 'http',
      url: value.url,
      headers: value.headers,
      allowHttp: value.allow_http,
      allowPrivate: value.allow_private,
    };
  },
};

function urlProblem(value: string, allowHttp: boolean): string | null {
  const url = parse(fillInAnything(value));
  if (url?.protocol === 'http:')
    return allowHttp ? credentialsProblem(url) : 'is unencrypted; write https://, or set allow_http';
  if (url?.protocol !== 'https:') return 'must be a URL that begins with https://';
  return credentialsProblem(url);
}

function credentialsProblem({ username, password }: URL): string | null {
  return username === '' && password === ''
    ? null
    : 'must not hold a user or a password; put them into headers';
}

function parse(value: string): URL | null {
  return URL.canParse(value) ? new URL(value) : null;
}

export const postgresField: Field<PostgresDefinition> = mapped(
  objectOf('postgres', 'What a query finds in another database.', {
    url: checkedText(
      { maxChars: 4_000, description: 'Connection string; the password as ${env:SCHEDULE_…}, or all of it.' },
      (value) => {
        if (placeholderProblem(value) !== null) return placeholderProblem(value);
        const whole = /^\$\{env:[A-Z0-9_]+\}$/.test(value);
        return whole || /^postgres(ql)?:\/\//.test(value)
          ? null
          : 'must be postgres://… or ${env:SCHEDULE_…}';
      },
    ),
    query: checkedText(
      {
        maxChars: maxQueryChars,
        pattern: [
          '^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f]*$',
          'must not hold control characters',
        ],
        description: 'One SELECT or WITH; its columns are the columns of the load.',
      },
      (value) => {
        if (!/^\s*(select|with|table|values)\b/i.test(value)) return 'must be one SELECT, or WITH … SELECT';
        return /;\s*\S/.test(value) ? 'must be one statement, without a semicolon' : null;
      },
    ),
    timeout: optional(duration('How long the query may take.', 1_000, 86_400_000), 3_600_000),
  }),
  ({ url, query, timeout }) => ({ kind: 'postgres', url, query, timeoutMs: timeout }),
);

export const s3Field: Field<S3Definition> = mapped(
  objectOf('s3', 'Objects in a bucket.', {
    url: text({
      maxChars: 1_200,
      pattern: ['^s3://[a-z0-9][a-z0-9.-]{1,62}(/[^\\u0000-\\u001f]*)?$', 'must be s3://bucket/prefix'],
      description: 's3://bucket/prefix: every object whose key begins so.',
    }),
    endpoint: maybe(
      text({
        maxChars: 500,
        pattern: ['^https?://[^@\\s]+$', 'must be a URL without user and password'],
        description: 'For other services than that of Amazon.',
      }),
    ),
    region: maybe(
      text({
        maxChars: 50,
        pattern: ['^[a-z0-9-]+$', 'must be a region such as eu-central-1'],
        description: 'Region of the bucket.',
      }),
    ),
    access_key: maybe(
      secretText({
        maxChars: 500,
        description: 'May hold ${env:SCHEDULE_…}; default: as the process finds it.',
      }),
    ),
    secret_key: maybe(secretText({ maxChars: 500, description: 'May hold ${env:SCHEDULE_…}.' })),
  }),
  ({ url, endpoint, region, access_key, secret_key }) => {
    const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/?(.*)$/s.exec(url) ?? [];
    return { kind: 's3', bucket, prefix, endpoint, region, accessKey: access_key, secretKey: secret_key };
  },
);

/** The same field, its value put otherwise. */
export function mapped<T, U>(field: Field<T>, put: (value: T) => U): Field<U> {
  return {
    schema: field.schema,
    read(node, problems) {
      const value = field.read(node, problems);
      return value === undefined ? undefined : put(value);
    },
  };
}
