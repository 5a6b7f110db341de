/** `type/subtype` of a Content-Type in lower case, without parameters. */
export function mediaType(contentType: string): string {
  return (contentType.split(';', 1)[0] ?? '').trim().toLowerCase()
}

export function isJsonType(contentType: string): boolean {
  const type = mediaType(contentType)
  return type === 'application/json' || type === 'text/json' || type.endsWith('+json')
}
