import { role } from './cells.ts';

const { userOfCompany, eventId, insertId, eventName, source, time, url, removed, automatic, property } = role;

/*
 * A shape specifies which cells of a record become properties of its row. It contains 1 for the
 * roles of these cells and 0 for all other roles.
 */
export const ofProfile = shape(
  removed,
  userOfCompany,
  eventId,
  insertId,
  eventName,
  source,
  time,
  url,
  property,
);
/** Shape of a profile whose record states its kind. */
export const ofStatedProfile = shape(removed, url, property);
export const ofEvent = shape(removed, automatic, property);
/** Shape of an event whose `url` is not a string. The `url` then becomes a property. */
export const ofEventWithUrl = shape(removed, automatic, property, url);

function shape(...roles: readonly number[]): Uint8Array {
  const shape = new Uint8Array(Object.keys(role).length);
  for (const each of roles) shape[each] = 1;
  return shape;
}
