import type { Linking, ShownLink } from '../../domain/identities.ts';
import { MAX_ID_BYTES } from '../../domain/limits.ts';
import { numberText } from '../json-text.ts';
import type { PresetLink, PresetRecord } from './record.ts';

/** Returns the link if both of its ids can be ids, and differ. */
export function readLink(link: PresetLink | undefined): ShownLink | null {
  if (link === undefined) return null;
  const [alias, userId] = [link.alias, link.userId].map((id) => numberText(id) ?? id);
  if (!isId(alias) || !isId(userId) || alias === userId) return null;
  return { alias, userId, linking: link.linking };
}

const isId = (id: unknown): id is string =>
  typeof id === 'string' &&
  id.trim() !== '' &&
  Buffer.byteLength(id) <= MAX_ID_BYTES &&
  id.isWellFormed() &&
  !id.includes('\0');

/** Says only that an id belongs to a person. */
export function linkRecord(alias: unknown, userId: unknown, linking: Linking): PresetRecord | null {
  if (alias === undefined || userId === undefined) return null;
  const record = { event_type: 'identify_user', user_id: userId, metadata: {} };
  return { record, profiles: [], link: { alias, userId, linking } };
}
