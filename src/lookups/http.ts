import { type Static, type TSchema, Type } from 'typebox';
import { inputError } from '../base/errors.ts';
import { DEFAULT_PAGE_SIZE } from '../base/limits.ts';
import type { System } from '../context.ts';
import type { KeyedItem, KeyedKind, TitledKind } from '../domain/definitions.ts';
import type { PropertyEntity } from '../domain/entity.ts';
import {
  type CursorKind,
  cursorParameter,
  limitParameter,
  offsetParameter,
  pageBytes,
  propertyCursor,
  segmentCursor,
} from '../http/page.ts';
import { lenientQuery } from '../http/plugins/validation.ts';
import { type Route, route } from '../http/route.ts';
import {
  embedItem,
  eventPropertyPage,
  keyedItem,
  MAX_LOOKUP_PAGE_SIZE,
  type Property,
  propertyItem,
  segmentPage,
  surveyItem,
  titledItem,
} from './api.ts';
import { listProperties, pageProperties } from './property-store.ts';
import { type LookupPage, listSegments, type PageQuery } from './segment-store.ts';
import { definitionsOf, listFeaturesAndEvents } from './store.ts';

interface Lookup {
  readonly operationId: string;
  readonly description: string;
  readonly item: TSchema;
  read(system: System, environmentId: number): Promise<readonly object[]>;
}

function properties(entity: PropertyEntity, what: 'user' | 'company', operationId: string): Lookup {
  const type: Property['type'] = `${what}_property`;
  return {
    operationId,
    description: `Lists every property that a ${what} has ever had, sorted by key.`,
    item: propertyItem.ref,
    read: async ({ reader: { db } }, environment) =>
      (await listProperties(db, environment, entity)).map(
        ({ id, key, display_name, data_type, is_auto_property }): Property => ({
          id,
          type,
          key,
          display_name,
          data_type,
          is_auto_property,
        }),
      ),
  };
}

const titled = (
  kind: TitledKind,
  operationId: string,
  item: TSchema = titledItem.ref,
  note = '',
): Lookup => ({
  operationId,
  description: `Lists the ${kind} that the operator defined, sorted by ID.${note}`,
  item,
  read: async ({ reader: { db } }, environment) =>
    (await definitionsOf[kind].read(db, environment)).map(({ id, title, type }) => ({ id, title, type })),
});

const keyed = ({ display_name, key, data_type }: KeyedItem) => ({ display_name, key, data_type });

const listKeyed = (kind: KeyedKind, operationId: string, what: string): Lookup => ({
  operationId,
  description: `Lists the ${what} that the operator defined, sorted by key.`,
  item: keyedItem.ref,
  read: async ({ reader: { db } }, environment) =>
    (await definitionsOf[kind].read(db, environment)).map(keyed),
});

/**
 * All lookups except segments, by the last part of their path. Responses are arrays in a fixed
 * order.
 */
const lookups: Readonly<Record<string, Lookup>> = {
  surveys: {
    operationId: 'listSurveys',
    description: 'Lists the surveys that the operator defined, with their questions, sorted by ID.',
    item: surveyItem.ref,
    read: async ({ reader: { db } }, environment) =>
      (await definitionsOf.surveys.read(db, environment)).map(({ id, title, platform, modules }) => {
        const shown = modules.map((each, at) => ({
          id: each.id,
          order: at + 1,
          type: each.type,
          question: each.question,
        }));
        return { id, title, platform, modules: shown };
      }),
  },
  embeds: titled('embeds', 'listEmbeds', embedItem.ref),
  user_properties: properties('users', 'user', 'listUserProperties'),
  company_properties: properties('companies', 'company', 'listCompanyProperties'),
  flows: titled('flows', 'listFlows'),
  banners: titled('banners', 'listBanners', titledItem.ref, ' Embedded banners are listed by `embeds` only.'),
  spotlights: titled('spotlights', 'listSpotlights'),
  resource_center_modules: listKeyed(
    'resource_center_modules',
    'listResourceCenterModules',
    'modules of the resource center',
  ),
  features_events: {
    operationId: 'listFeaturesAndEvents',
    description:
      'Lists the features that the operator defined and all names of tracked events, sorted by key. An event with the key of a feature is listed once, as the feature.',
    item: keyedItem.ref,
    read: async ({ reader: { db } }, environment) =>
      (await listFeaturesAndEvents(db, environment)).map(keyed),
  },
  checklists: listKeyed('checklists', 'listChecklists', 'checklists'),
};

const plainRoutes = Object.entries(lookups).map(([name, { item, read, description, operationId }]) =>
  route({
    at: `GET /api/v1/analytics/exports/lookups/${name}`,
    operationId,
    summary: operationId.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replace('list', 'List'),
    description: `${description} A request body and all parameters are ignored.`,
    access: 'read',
    config: pageBytes,
    answer: { description: 'All of them.', schema: Type.Array(item) },
    handle: async ({ system, environment }) => read(system, environment) as Promise<never[]>,
  }),
);

function pageQuery(kind: Pick<CursorKind<unknown>, 'read'>, what: string) {
  const cursor = (name: string, description: string) =>
    cursorParameter(kind, `${name} is taken, unchanged, from metadata.cursor`, description);
  return lenientQuery({
    limit: limitParameter(MAX_LOOKUP_PAGE_SIZE, `Maximum number of ${what} on a page.`),
    offset: offsetParameter,
    after_cursor: cursor(
      'after_cursor',
      'Returns the next page: `metadata.cursor.after` of the previous answer, unchanged.',
    ),
    before_cursor: cursor(
      'before_cursor',
      'Returns the previous page: `metadata.cursor.before`, unchanged. Not together with `after_cursor`.',
    ),
  });
}

async function answerPage<T, P>(
  query: Static<ReturnType<typeof pageQuery>>,
  kind: CursorKind<P>,
  placeOf: (item: T) => P,
  read: (request: PageQuery<P>) => Promise<LookupPage<T>>,
) {
  const { limit = DEFAULT_PAGE_SIZE, after_cursor = '', before_cursor = '', offset = 0 } = query;
  if (offset > 0 && after_cursor + before_cursor !== '')
    throw inputError('invalid_field', 'Send either a cursor or offset', 'offset');
  if (after_cursor !== '' && before_cursor !== '') {
    const message = 'Give either after_cursor or before_cursor; a page lies on one side of a cursor';
    throw inputError('invalid_field', message, 'before_cursor');
  }
  const after = kind.read(after_cursor);
  const before = kind.read(before_cursor);
  const page = await read({ limit, after, before, offset });
  const first = page.items[0];
  const last = page.items.at(-1);
  return {
    data: [...page.items],
    metadata: {
      cursor: {
        // Callers that read all pages stop at an empty string, not at null.
        after: page.hasAfter && last !== undefined ? kind.write(placeOf(last)) : '',
        before: page.hasBefore && first !== undefined ? kind.write(placeOf(first)) : null,
      },
      limit,
      total_count: page.total,
    },
  };
}

const listSegmentsRoute = route({
  at: 'GET /api/v1/analytics/exports/lookups/segments',
  operationId: 'listSegments',
  summary: 'List segments',
  description:
    'Lists the segments that the operator defined, sorted by ID. A cursor stays valid when segments are added or removed. A request body is ignored.',
  access: 'read',
  config: pageBytes,
  query: pageQuery(segmentCursor, 'segments'),
  answer: { description: 'A page of segments.', schema: segmentPage.ref },
  handle: ({ system: { reader }, query, environment }) =>
    answerPage(
      query,
      segmentCursor,
      ({ id }) => id,
      (request) => listSegments(reader.db, environment, request),
    ),
});

const listEventsProperties = route({
  at: 'GET /api/v1/analytics/exports/lookups/events_properties',
  operationId: 'listEventsProperties',
  summary: 'List events properties',
  description:
    'Lists every property that an event has ever had, sorted by key. A cursor stays valid when properties are added. A request body is ignored.',
  access: 'read',
  config: pageBytes,
  query: pageQuery(propertyCursor, 'properties'),
  answer: { description: 'A page of properties.', schema: eventPropertyPage.ref },
  handle: ({ system: { reader }, query, environment }) =>
    answerPage(
      query,
      propertyCursor,
      ({ key }) => key,
      async (request) => {
        const page = await pageProperties(reader.db, environment, 'events', request);
        return { ...page, items: page.items.map((each): Property => ({ ...each, type: 'event_property' })) };
      },
    ),
});

export const lookupRoutes: readonly Route[] = [...plainRoutes, listSegmentsRoute, listEventsProperties];
