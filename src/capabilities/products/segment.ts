import type { Reason } from '../../domain/reject.ts';
import type { JsonObject } from '../../formats/json-text.ts';
import { companyId, firstId, joinsIds, membersOf, notStored, type OurRecords, objectOf } from './record.ts';

/**
 * Reads a call in the format of Segment's sources and archives. An identify or group call becomes a
 * profile with its traits. The fields of an event become metadata, except Segment's own fields.
 * RudderStack sends an empty `userId` for anonymous users, and the traits of an identify call in
 * `context`.
 */
export function readSegment(call: JsonObject): OurRecords | Reason {
  const { type, userId, anonymousId, groupId } = call;
  const user_id = firstId(userId, anonymousId);
  const metadata = membersOf(call['traits'], 'traits');
  switch (type) {
    case 'identify': {
      const context = objectOf(call['context']);
      const traits = call['traits'] === undefined ? membersOf(context['traits'], 'traits') : metadata;
      const company_id = companyId(context['groupId']);
      return [{ event_type: 'identify_user', user_id, company_id, metadata: traits }];
    }
    case 'group':
      return user_id === undefined
        ? [{ event_type: 'identify_company', company_id: groupId, metadata }]
        : [{ event_type: 'identify_user', user_id, company: { company_id: groupId, metadata } }];
    case 'page':
    case 'screen':
    case 'track':
      return [{ user_id, ...readEvent(call) }];
    case 'alias':
      return joinsIds;
    default:
      return notStored('Segment has no such call');
  }
}

function readEvent(call: JsonObject): JsonObject {
  const { type, userId: _, anonymousId, groupId, event, name, properties, ...others } = call;
  const { type: __, timestamp, originalTimestamp, sentAt, receivedAt, messageId, ...more } = others;
  const { writeKey, _metadata, integrations, ...rest } = more;
  const eventProperties = membersOf(properties, 'properties');
  const isTrack = type === 'track';
  return {
    event_type: isTrack ? 'track' : 'page_view',
    event_name: isTrack ? event : name || undefined,
    event_id: messageId,
    inserted_at: timestamp ?? originalTimestamp,
    company_id: firstId(groupId, objectOf(call['context'])['groupId']),
    url: isTrack ? undefined : eventProperties['url'],
    metadata: { ...rest, anonymousId, ...eventProperties },
  };
}
