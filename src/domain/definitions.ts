import { type InputError, inputError } from '../base/errors.ts';
import { capitalise } from '../base/wording.ts';
import type { DataType } from './data-type.ts';

/**
 * Kinds of definitions. They have the same names in the definitions file, in tables and in lookups.
 */
export const kinds = [
  'segments',
  'surveys',
  'embeds',
  'flows',
  'banners',
  'spotlights',
  'resource_center_modules',
  'checklists',
  'features',
  'event_retention',
] as const;
export type Kind = (typeof kinds)[number];

const keyedKinds = ['resource_center_modules', 'checklists', 'features'] as const satisfies Kind[];
export type KeyedKind = (typeof keyedKinds)[number];

const titledKinds = ['embeds', 'flows', 'banners', 'spotlights'] as const satisfies Kind[];
export type TitledKind = (typeof titledKinds)[number];

export const embedTypes = ['banner', 'card'] as const;
type EmbedType = (typeof embedTypes)[number];

/** The API cannot change a segment that the file defines. */
export const makers = ['file', 'api'] as const;
export type Maker = (typeof makers)[number];

export function definedByFile(key: string): InputError {
  const message = 'The definitions file defines this segment: change it in the file';
  return inputError('definition_locked', message, key);
}

export interface Keyed {
  readonly key: string;
}

/** Lists of definitions by the name of the list, including lists of capabilities. */
export type Lists = Readonly<Record<string, readonly Keyed[]>>;

export interface SegmentItem {
  /** Unique among segments. */
  readonly key: string;
  readonly title: string;
  readonly usage: string;
  readonly category: string;
  readonly is_hidden: boolean;
  readonly is_protected: boolean;
  readonly status: string;
  readonly made_by: Maker;
  readonly definition: object;
}

export interface SurveyItem {
  readonly key: string;
  readonly title: string;
  readonly platform: string;
  readonly modules: readonly SurveyModule[];
}

export interface SurveyModule {
  readonly key: string;
  readonly type: string;
  readonly question: string;
}

export interface TitledItem {
  readonly key: string;
  readonly title: string;
  readonly type: string;
}

interface EmbedItem extends TitledItem {
  readonly type: EmbedType;
}

export interface KeyedItem {
  readonly key: string;
  readonly display_name: string;
  readonly data_type: string;
}

interface RetentionItem {
  /** Name of the event. `*` means every event that has no entry of its own. */
  readonly key: string;
  /** 0 means forever. */
  readonly days: number;
}

/** A property with a column of its own in a table or file. Query engines identify it by `id`. */
export interface PropertyField {
  readonly key: string;
  readonly type: DataType;
  readonly id: number;
}

interface Items {
  readonly segments: SegmentItem;
  readonly surveys: SurveyItem;
  readonly embeds: EmbedItem;
  readonly flows: TitledItem;
  readonly banners: TitledItem;
  readonly spotlights: TitledItem;
  readonly resource_center_modules: KeyedItem;
  readonly checklists: KeyedItem;
  readonly features: KeyedItem;
  readonly event_retention: RetentionItem;
}

export type ItemOf<K extends Kind> = Items[K];
export type Definitions = { readonly [K in Kind]: readonly Items[K][] };

export interface Stored {
  readonly id: number;
}
export type StoredSegment = SegmentItem & Stored;
type StoredTitled = TitledItem & Stored;
type StoredEmbed = EmbedItem & Stored;
export type StoredSurvey = Omit<SurveyItem, 'modules'> &
  Stored & { readonly modules: readonly (SurveyModule & Stored)[] };

interface StoredItems extends Pick<Items, KeyedKind | 'event_retention'> {
  readonly segments: StoredSegment;
  readonly surveys: StoredSurvey;
  readonly embeds: StoredEmbed;
  readonly flows: StoredTitled;
  readonly banners: StoredTitled;
  readonly spotlights: StoredTitled;
}

export type StoredOf<K extends Kind> = StoredItems[K];
export type StoredDefinitions = { readonly [K in Kind]: readonly StoredItems[K][] };

const separators = /[\s_.-]+/u;
/**
 * Splits names such as `monthlyActive` and `APIKey` into words. A word may end with a digit only
 * before a capitalised word.
 */
const capitals = /(?<=[\p{Ll}\p{M}])(?=\p{Lu})|(?<=[\p{Lu}\p{N}])(?=\p{Lu}\p{Ll})/u;

/** Returns a name for display, such as `Account Tier` for `account_tier` or `accountTier`. */
export function displayName(key: string): string {
  const words = key.split(separators).flatMap((part) => (part === '' ? [] : part.split(capitals)));
  // A key without words, such as `__`, would not be visible.
  return words.length === 0 ? JSON.stringify(key) : words.map(capitalise).join(' ');
}
