import type { JsonObject } from '../../formats/json-text.ts';
import { companyId, givenId, linkRecord, membersOf, objectOf, type PresetRecord } from './record.ts';

/**
 * A call as Segment's sources send and its destinations archive it: `type` identify, group, track, page or screen, with
 * `userId` or `anonymousId`, `traits` or `properties`, `timestamp` and `messageId`. What an event has besides becomes
 * metadata, but what is for Segment itself; of identify and group calls the traits do. RudderStack's calls are the same, but for an empty `userId` of who
 * is anonymous, and the traits of identify calls, which stand in `context`.
 */
export function readSegmentRecord(call: JsonObject): PresetRecord | null {
  const { type, userId, anonymousId, previousId } = call;
  if (type === 'alias') {
    return previousId === undefined
      ? linkRecord(anonymousId, userId, 'observe')
      : linkRecord(previousId, userId, 'add');
  }
  const record = readCall(call);
  if (record === null) return null;
  const isBoth = type === 'identify' && userId !== undefined && anonymousId !== undefined;
  return {
    record,
    profiles: [],
    ...(isBoth && { links: [{ alias: anonymousId, userId, linking: 'observe' }] }),
  };
}

function readCall(call: JsonObject): JsonObject | null {
  const { type, userId, anonymousId, groupId, timestamp, originalTimestamp } = call;
  const user = givenId(userId, anonymousId);
  const shared = { user_id: user, inserted_at: timestamp ?? originalTimestamp };
  const metadata = membersOf(call['traits'], 'traits');
  switch (type) {
    case 'identify': {
      const { groupId: company, traits } = objectOf(call['context']);
      const own = call['traits'] === undefined ? membersOf(traits, 'traits') : metadata;
      return { ...shared, event_type: 'identify_user', company_id: companyId(company), metadata: own };
    }
    case 'group':
      return user === undefined
        ? { ...shared, event_type: 'identify_company', company_id: groupId, metadata }
        : { ...shared, event_type: 'identify_user', company: { company_id: groupId, metadata } };
    case 'page':
    case 'screen':
    case 'track':
      return { ...shared, ...readSegmentEvent(call) };
    default:
      return null;
  }
}

function readSegmentEvent(call: JsonObject): JsonObject {
  const { type, userId: _, anonymousId, groupId, event, name, properties, ...others } = call;
  const { type: __, timestamp: ___, originalTimestamp, sentAt, receivedAt, messageId, ...more } = others;
  const { writeKey, _metadata, integrations, ...rest } = more;
  const own = membersOf(properties, 'properties');
  const isTrack = type === 'track';
  return {
    event_type: isTrack ? 'track' : 'page_view',
    event_name: isTrack ? event : name || undefined,
    event_id: messageId,
    company_id: givenId(groupId, objectOf(call['context'])['groupId']),
    url: isTrack ? undefined : own['url'],
    metadata: { ...rest, anonymousId, ...own },
  };
}
