import { Type } from 'typebox';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../../domain/limits.ts';

/** Parameters of what is answered page by page. */
export const pageParameters = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_PAGE_SIZE,
      default: DEFAULT_PAGE_SIZE,
      description: 'Items on a page, at most; of refused records as many as fit into a megabyte.',
    }),
  ),
  cursor: Type.Optional(
    Type.String({ description: 'Where the page begins, unchanged from the page before (`Link`).' }),
  ),
};
