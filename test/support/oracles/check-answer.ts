import type { Answer, Header, Operation } from '../../../src/http/api-document.ts';
import { type DescribedApi, describedApi, type FoundAnswer } from './api-document.ts';

/**
 * Checks the path, method, status, headers, media type and JSON body of a response against the
 * OpenAPI document, but not the content of files. A path that the document lacks may return only an
 * error record. Throws an Error that lists the differences.
 */
export async function checkAnswer(method: string, path: string, response: Response): Promise<void> {
  const api = await describedApi();
  const problems = await findProblems(api, method, path, response);
  if (problems.length === 0) return;
  throw new Error(
    `${method} ${path} was answered ${response.status}, not as the OpenAPI document says:\n${problems
      .slice(0, 8)
      .map((problem) => `  - ${problem}`)
      .join('\n')}`,
  );
}

interface Problem {
  readonly message: string;
  readonly details: string;
}

async function findProblems(
  api: DescribedApi,
  method: string,
  path: string,
  response: Response,
): Promise<string[]> {
  const name = method === 'HEAD' ? 'get' : method.toLowerCase();
  const templates = Object.keys(api.document.paths);
  // A path can match two templates: `/v1/users/bulk_identify` also matches `/v1/users/{user_id}`.
  // The template that has the request's method takes precedence. If no template has the method, the
  // service answers 405.
  const ofMethod = templates.filter((each) => api.document.paths[each]?.[name] !== undefined);
  const template = findTemplate(ofMethod, path) ?? findTemplate(templates, path);
  // The HTML pages below /docs are not part of the API.
  if (template === undefined && /^\/docs(\/|$)/.test(path)) return [];
  if (template === undefined) return checkRefusal(api, response, [404]);
  const operation = api.document.paths[template]?.[name];
  const isOther = response.status === 405 && findTemplate(templates, path) !== template;
  if (operation === undefined || isOther) return checkRefusal(api, response, [405]);
  const status = String(response.status);
  const documented = api.answer(['paths', template, name], operation, status);
  if (documented === undefined) return [undocumented(operation, status)];
  return [
    ...checkHeaders(api, documented.answer, response.headers),
    ...(await checkBody(api, documented, response, method === 'HEAD')),
  ];
}

function undocumented({ operationId, responses }: Operation, status: string): string {
  return `${operationId} has no answer ${status}; it has ${Object.keys(responses).join(', ')}`;
}

/**
 * Returns the template that matches the path. If several match, returns the one with the most fixed
 * segments.
 */
function findTemplate(templates: readonly string[], path: string): string | undefined {
  const split = (each: string) => each.replace(/\/+/g, '/').replace(/\/$/, '').split('/');
  const parts = split(path);
  const isParameter = (part: string) => part.startsWith('{');
  return templates
    .filter((template) => {
      const wanted = split(template);
      return (
        wanted.length === parts.length && wanted.every((part, at) => isParameter(part) || part === parts[at])
      );
    })
    .sort((a, b) => a.split('/').filter(isParameter).length - b.split('/').filter(isParameter).length)[0];
}

async function checkRefusal(
  api: DescribedApi,
  response: Response,
  statuses: readonly number[],
): Promise<string[]> {
  const id = response.headers.has('x-request-id') ? [] : ['the header x-request-id is missing'];
  if (!statuses.includes(response.status)) return [...id, 'no such operation is in the document'];
  if (response.status === 405 && !response.headers.has('allow')) id.push('the header Allow is missing');
  const text = await response.clone().text();
  if (text === '') return id;
  return [...id, ...checkJson(api, ['components', 'schemas', 'ErrorRecord'], text)];
}

function checkHeaders({ document }: DescribedApi, { headers = {} }: Answer, received: Headers): string[] {
  return Object.entries(headers).flatMap(([name, header]) => {
    const { required = false, schema = {} } =
      '$ref' in header ? (document.components.headers[name] as Header) : header;
    const value = received.get(name);
    if (value === null) return required ? [`the header ${name} is missing`] : [];
    return headerAllows(schema, value) ? [] : [`the header ${name} may not be ${JSON.stringify(value)}`];
  });
}

function headerAllows(
  schema: { readonly type?: string; readonly pattern?: string; readonly const?: string },
  value: string,
): boolean {
  if (schema.type === 'integer') return /^\d+$/.test(value);
  if (schema.const !== undefined) return value === schema.const;
  return schema.pattern === undefined || new RegExp(schema.pattern, 'u').test(value);
}

async function checkBody(
  api: DescribedApi,
  { answer: { content }, place }: FoundAnswer,
  response: Response,
  isHead: boolean,
): Promise<string[]> {
  if (content === undefined) {
    return (await response.clone().text()) === '' ? [] : ['the body must be empty'];
  }
  const type = response.headers.get('content-type')?.split(';', 1)[0]?.trim() ?? '';
  if (!(type in content)) return [`the media type ${type} is none of ${Object.keys(content).join(', ')}`];
  if (isHead || type !== 'application/json') return [];
  // Reads a clone of the response, because the test itself reads the original.
  return checkJson(api, [...place, 'content', type, 'schema'], await response.clone().text());
}

function checkJson(api: DescribedApi, place: readonly string[], text: string): string[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return [`the body is not JSON: ${error instanceof Error ? error.message : String(error)}`];
  }
  return [...api.problems(place, value), ...checkMessages(api, value)];
}

interface Messages {
  readonly errors?: readonly Problem[];
  readonly data?: readonly Partial<Refused>[];
}

interface Refused {
  readonly message: string;
  readonly column: string | null;
}

function messagesOf(body: unknown): Problem[] {
  const { errors = [], data = [] } = (body ?? {}) as Messages;
  const records = Array.isArray(data) ? data : [];
  const refused = records.flatMap(({ message, column }) =>
    message === undefined ? [] : [{ message, details: column ?? '' }],
  );
  return [...errors, ...refused];
}

/**
 * Checks that each message starts with a capital letter or the name of a field, without a full stop
 * at the end.
 */
function checkMessages({ fields }: DescribedApi, body: unknown): string[] {
  return messagesOf(body)
    .filter(({ message, details }) => {
      const [word = ''] = /^[\p{L}\p{N}_$]*/u.exec(message) ?? [];
      // A message may start with the name of a property, which can be any text. In a batch, the
      // message repeats the name in parentheses. Otherwise, `details` contains the name.
      const [, property = '.'] = /\((.+?)\)/.exec(message) ?? [];
      const isNamed = /^\w+[.[]/.test(message) || message.startsWith(property);
      const isField = fields.has(word) || details.split(/[^\p{L}\p{N}_$]+/u).includes(word) || isNamed;
      return /[^.]\.$/.test(message) || (/^\p{Ll}/u.test(word) && !isField);
    })
    .map(({ message }) => `the message is not in the form of all messages: ${message}`);
}
