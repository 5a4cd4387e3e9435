import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, type TSchema, Type } from 'typebox';
import { embedItem, keyedItem, propertyItem, surveyItem, titledItem } from '../../api/definition.ts';
import type { System } from '../../context.ts';
import type {
  KeyedItem,
  KeyedKind,
  StoredEmbed,
  StoredSurvey,
  StoredTitled,
  TitledKind,
} from '../../domain/definitions.ts';
import type { PropertyEntity } from '../../domain/entity.ts';
import { MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { definitionsOf, listFeaturesAndEvents } from '../../postgres/stores/definitions.ts';
import { type ListedProperty, listProperties } from '../../postgres/stores/properties.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery, undocumented } from '../plugins/validation.ts';
import { refusals } from '../schemas/answers.ts';

type SurveyLookup = Static<typeof surveyItem.schema>;

type EmbedLookup = Static<typeof embedItem.schema>;

type TitledLookup = Static<typeof titledItem.schema>;

type PropertyLookup = Static<typeof propertyItem.schema>;

type KeyedLookup = Static<typeof keyedItem.schema>;

interface LookupText {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
}

/** Clients that page through the segments send these to every lookup; the others are lists of one page. */
const ignored = Type.Optional(Type.Any());

const pageParameters = { limit: ignored, cursor: ignored, after_cursor: ignored, before_cursor: ignored };

const query = Object.assign(listQuery(pageParameters), { [undocumented]: true });

/** A lookup that answers a bare array of all there is. */
function lookupSchema(text: LookupText, item: TSchema) {
  return {
    ...text,
    description: `${text.description} A body of the request is ignored, and so are \`limit\` and cursors; other parameters are refused.`,
    tags: ['lookups'],
    querystring: query,
    response: {
      200: { description: 'All of them.', content: { 'application/json': { schema: Type.Array(item) } } },
      ...refusals('invalid_field'),
    },
  } satisfies FastifySchema;
}

interface Lookup extends LookupText {
  readonly item: TSchema;
  read(system: System, environmentId: number): Promise<readonly object[]>;
}

/** By the last part of their path. Bare arrays, in an order that does not change. */
const lookups: Readonly<Record<string, Lookup>> = {
  surveys: {
    operationId: 'listSurveys',
    summary: 'List surveys',
    description: 'The surveys that the operator defined, with their modules, by id.',
    item: surveyItem.ref,
    read: async ({ reader: { db } }, environment) =>
      (await definitionsOf.surveys.read(db, environment)).map(renderSurvey),
  },
  embeds: {
    operationId: 'listEmbeds',
    summary: 'List embeds',
    description: 'The banners and cards that the operator defined, by id.',
    item: embedItem.ref,
    read: async ({ reader: { db } }, environment) =>
      (await definitionsOf.embeds.read(db, environment)).map(renderEmbed),
  },
  user_properties: {
    operationId: 'listUserProperties',
    summary: 'List user properties',
    description: 'Every property that a user has ever had, by key.',
    item: propertyItem.ref,
    read: readProperties('users', 'user_property'),
  },
  company_properties: {
    operationId: 'listCompanyProperties',
    summary: 'List company properties',
    description: 'Every property that a company has ever had, by key.',
    item: propertyItem.ref,
    read: readProperties('companies', 'company_property'),
  },
  events_properties: {
    operationId: 'listEventsProperties',
    summary: 'List properties of events',
    description: 'Every property that an event has ever had, by key.',
    item: propertyItem.ref,
    read: readProperties('events', 'event_property'),
  },
  flows: {
    operationId: 'listFlows',
    summary: 'List flows',
    description: 'The flows that the operator defined, by id.',
    item: titledItem.ref,
    read: readTitled('flows'),
  },
  banners: {
    operationId: 'listBanners',
    summary: 'List banners',
    description: 'The banners that the operator defined, by id. Those among the embeds are not listed here.',
    item: titledItem.ref,
    read: readTitled('banners'),
  },
  spotlights: {
    operationId: 'listSpotlights',
    summary: 'List spotlights',
    description: 'The spotlights that the operator defined, by id.',
    item: titledItem.ref,
    read: readTitled('spotlights'),
  },
  resource_center_modules: {
    operationId: 'listResourceCenterModules',
    summary: 'List resource center modules',
    description: 'The modules of the resource center that the operator defined, by key.',
    item: keyedItem.ref,
    read: readKeyed('resource_center_modules'),
  },
  features_events: {
    operationId: 'listFeaturesAndEvents',
    summary: 'List features and events',
    description:
      'The features that the operator defined, and every name that an event was tracked under, by key. An event with the key of a feature is listed once, as the feature.',
    item: keyedItem.ref,
    read: async ({ reader: { db } }, environment) =>
      (await listFeaturesAndEvents(db, environment)).map(renderKeyed),
  },
  checklists: {
    operationId: 'listChecklists',
    summary: 'List checklists',
    description: 'The checklists that the operator defined, by key.',
    item: keyedItem.ref,
    read: readKeyed('checklists'),
  },
};

/** All lookups but the segments. */
export function listLookups(app: FastifyInstance, system: System): void {
  for (const [name, { item, read, ...text }] of Object.entries(lookups)) {
    const options = {
      config: { scope: 'read', answerBytes: MAX_PAGE_BYTES },
      schema: lookupSchema(text, item),
    } as const;
    app.get(`/api/v1/analytics/exports/lookups/${name}`, options, async (request, reply) => {
      return reply.send(await read(system, environmentId(request)));
    });
  }
}

function readProperties(entity: PropertyEntity, type: PropertyLookup['type']): Lookup['read'] {
  return async ({ reader: { db } }, environment) =>
    (await listProperties(db, environment, entity)).map((property) => renderProperty(property, type));
}

function readTitled(kind: Exclude<TitledKind, 'embeds'>): Lookup['read'] {
  return async ({ reader: { db } }, environment) =>
    (await definitionsOf[kind].read(db, environment)).map(renderTitled);
}

function readKeyed(kind: KeyedKind): Lookup['read'] {
  return async ({ reader: { db } }, environment) =>
    (await definitionsOf[kind].read(db, environment)).map(renderKeyed);
}

function renderSurvey({ id, title, platform, modules }: StoredSurvey): SurveyLookup {
  const shown = modules.map(({ id, type, question }, index) => ({ id, order: index + 1, type, question }));
  return { id, title, platform, modules: shown };
}

function renderEmbed({ id, title, type }: StoredEmbed): EmbedLookup {
  return { id, title, type };
}

function renderTitled({ id, title, type }: StoredTitled): TitledLookup {
  return { id, title, type };
}

function renderProperty(
  { id, key, display_name, data_type, is_auto_property }: ListedProperty,
  type: PropertyLookup['type'],
): PropertyLookup {
  return { id, type, key, display_name, data_type, is_auto_property };
}

function renderKeyed({ display_name, key, data_type }: KeyedItem): KeyedLookup {
  return { display_name, key, data_type };
}
