import { Type } from 'typebox';
import { presetTitles } from '../../domain/source.ts';
import { baseUrl } from '../../http/page.ts';
import { pathParameter } from '../../http/parameters.ts';
import { directRoute, type Route } from '../../http/route.ts';
import { anyObject, withExamples } from '../../http/schema.ts';
import { type Members, type SdkProduct, sdks, takeCalls } from './take-calls.ts';

/**
 * Method and path of a route, its product, and the members that the path implies for each record.
 * If there are two products, a body with `events` belongs to the second one.
 */
type ProductRoute = readonly [
  at: `${'POST' | 'GET'} /${string}`,
  product: SdkProduct | readonly [SdkProduct, SdkProduct],
  adds?: Members,
];

/**
 * Types of Segment calls, by the last part of the path. The browser SDK uses the single letters.
 * `null` means that each record specifies its type. `segmentCalls` in `take-calls.ts` handles
 * `/v1/identify`, `/v1/track` and `/v1/batch`.
 */
const callTypes: Readonly<Record<string, string | null>> = {
  page: 'page',
  screen: 'screen',
  group: 'group',
  alias: 'alias',
  i: 'identify',
  t: 'track',
  p: 'page',
  s: 'screen',
  g: 'group',
  a: 'alias',
  b: null,
  import: null,
};

const table: readonly ProductRoute[] = [
  ['POST /capture', 'posthog'],
  ['POST /e', 'posthog'],
  ['POST /i/v0/e', 'posthog'],
  ['POST /batch', ['posthog', 'amplitude']],
  ...['/track', '/engage', '/groups', '/import'].flatMap((path): ProductRoute[] => [
    [`POST ${path}` as 'POST /', 'mixpanel'],
    [`GET ${path}` as 'GET /', 'mixpanel'],
  ]),
  ['POST /2/httpapi', 'amplitude'],
  ['POST /identify', 'amplitude', { event_type: '$identify' }],
  ['POST /groupidentify', 'amplitude', { event_type: '$groupidentify' }],
];

const anything = anyObject('As the product documents it.');
const anyJson = { 'application/json': { schema: anything } };
const numeral = Type.String({ description: '1, or 0 if nothing was taken.' });
const text = { 'text/plain': withExamples(numeral, { taken: { summary: 'Committed', value: '1' } }) };

const examples: Readonly<Record<SdkProduct, object>> = {
  segment: { userId: 'u1', messageId: 'm1', event: 'Paid', groupId: 'acme', properties: { amount: 49.5 } },
  posthog: { api_key: 'slk_…', event: 'Paid', distinct_id: 'u1', properties: { amount: 49.5 } },
  mixpanel: { event: 'Paid', properties: { token: 'slk_…', distinct_id: 'u1', amount: 49.5 } },
  amplitude: { api_key: 'slk_…', events: [{ event_type: 'Paid', user_id: 'u1', insert_id: 'i1' }] },
};

const refusal = {
  description:
    'Records were refused, or the body has none. The answer is the error record and what the product would answer.',
  content: anyJson,
};
const ofRecords = [
  ...(['invalid_json', 'missing_field', 'invalid_field'] as const),
  ...(['unknown_event_type', 'unsupported_kind', 'invalid_date', 'invalid_metadata_value'] as const),
  ...(['breaks_rule', 'suppressed'] as const),
];

/**
 * Documents a route. The example in the document is a record of the product `example`. If
 * `isStrict` is true for the SDK of the product `strict`, the document also lists refusals.
 */
function taking(names: string, paths: string, example: SdkProduct, strict: SdkProduct, isRead = false) {
  const examplesOf = { example: { summary: 'A record', value: examples[example] } };
  return {
    summary: `Take records of the SDKs of ${names}`,
    description: `Answers ${paths}, once the records are committed. The key may be where the SDK puts it; without an Authorization header the body has at most 1 MiB.`,
    access: 'ingest',
    config: { keyInBody: true },
    bodyKind: 'sdk',
    ...(!isRead && { content: { 'application/json': withExamples(anything, examplesOf) } }),
    answer: {
      description: 'The records are committed.',
      content: { ...anyJson, ...(example === 'mixpanel' && text) },
    },
    ...(sdks[strict].isStrict && { answers: { 400: refusal } }),
    refuses: [...ofRecords, 'too_many_records'],
  } as const;
}

function productRoute([at, product, adds = {}]: ProductRoute): Route {
  const [first, second = first] = [product].flat() as [SdkProduct, SdkProduct?];
  const names = [...new Set([first, second])].map((preset) => presetTitles[preset]).join(' or ');
  const choose = (envelope: Members): SdkProduct => (Array.isArray(envelope['events']) ? second : first);
  return directRoute(
    {
      at,
      operationId: first + at.replace(/\d/g, '').replace(/(?:^| |\/)+(.)(\w*)/g, capitalised),
      ...taking(names, `as ${names} would`, first, second, at.startsWith('GET')),
    },
    (system) => (request, reply) => takeCalls(system, choose, adds, request, reply),
  );
}

function capitalised(_: string, first: string, rest: string): string {
  return first.toUpperCase() + rest.toLowerCase();
}

/**
 * Settings that Segment's browser SDK reads first. The SDK sends all calls to the address in these
 * settings.
 */
const segmentSettings = directRoute(
  {
    at: 'GET /v1/projects/:write_key/settings',
    operationId: 'showSegmentSettings',
    summary: 'Show the settings of the browser SDK of Segment',
    description: 'Tells `@segment/analytics-next`, which is given this address as `cdnURL`, where to send.',
    access: 'ingest',
    config: { keyInBody: true },
    params: pathParameter('write_key', Type.String({ description: 'The key.' }), 'There is no such key'),
    answer: { description: 'The settings, as Segment has them.', content: anyJson },
  },
  ({ config }) =>
    async (request, reply) => {
      const { write_key: apiKey } = request.params as { readonly write_key: string };
      if (request.caller === null) await request.server.admitKey(request, reply, apiKey);
      const { protocol, host, pathname } = new URL(baseUrl(request, config.publicUrl));
      const apiHost = `${host}${pathname.replace(/\/$/, '')}/v1`;
      const integrations = { 'Segment.io': { apiKey, apiHost, protocol: protocol.slice(0, -1) } };
      return {
        integrations,
        metrics: { sampleRate: 0 },
        plan: {},
        remotePlugins: [],
        legacyVideoPluginsEnabled: false,
      };
    },
);

const segmentCall = directRoute(
  {
    // The pattern matches only known calls, so the service responds to other paths with 404 or 405.
    at: `POST /v1/:call(^(${Object.keys(callTypes).join('|')})$)` as 'POST /v1/:call',
    operationId: 'sendSegmentCall',
    ...taking(
      'Segment',
      'the paths of Segment beside `/v1/identify`, `/v1/track` and `/v1/batch`',
      'segment',
      'segment',
    ),
    params: pathParameter(
      'call',
      Type.Enum(Object.keys(callTypes), {
        type: 'string',
        description: 'The call: its name or its letter.',
      }),
      'There is no such route',
    ),
  },
  (system) => (request, reply) => {
    const { call } = request.params as { readonly call: string };
    const type = callTypes[call] ?? null;
    return takeCalls(system, () => 'segment', type === null ? {} : { type }, request, reply);
  },
);

export const productRoutes: readonly Route[] = [...table.map(productRoute), segmentCall, segmentSettings];
