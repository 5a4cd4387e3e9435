import { dispositionFilename } from '../schemas/filename.ts';
import { readUploadOptions } from '../schemas/load-options.ts';
import type { GivenOption } from '../schemas/option-values.ts';
import { bodyOf, storeFile, type Upload, type Uploaded } from './upload.ts';

/** A body that is the file itself. */
export async function receiveBody(upload: Upload, given: readonly GivenOption[]): Promise<Uploaded> {
  const { request, kind, headers } = upload;
  const options = readUploadOptions(given, kind.entity);
  const filename = options.filename ?? dispositionFilename(request.headers['content-disposition']);
  const received = await storeFile(upload, bodyOf(request.raw), {
    filename,
    format: options.format,
    contentType: headers.mediaType,
    contentEncodingGzip: headers.gzip,
  });
  return { received, filename: filename ?? kind.defaultFilename, options: options.load };
}
