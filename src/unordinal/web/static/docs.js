// The API's documentation, made from its OpenAPI file.
function make(tag, text = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

function rangeOf(schema) {
  if (schema.anyOf) { return schema.anyOf.map(rangeOf).join(", or "); }
  const low = schema.minimum ?? schema.exclusiveMinimum, high = schema.maximum ?? schema.exclusiveMaximum;
  const kinds = [schema.type].flat().filter((kind) => kind !== "null").join(" or ");
  const parts = [schema.enum ? schema.enum.filter((name) => name !== null).join(", ") : kinds];
  if (low !== undefined) { parts.push(`${low} to ${high}`); }
  if (schema.maxLength !== undefined) { parts.push(`at most ${schema.maxLength} characters`); }
  if (schema.default !== undefined) { parts.push(`default ${JSON.stringify(schema.default)}`); }
  return parts.join("; ");
}

document.getElementById("origin").textContent = location.origin;
const api = await (await fetch("api/v1/openapi.json")).json();
const sections = Object.entries(api.paths).map(([path, methods]) => {
  const section = document.createElement("section");
  const [method, operation] = Object.entries(methods)[0];
  section.append(make("h2", `${method.toUpperCase()} ${path}`), make("p", operation.summary));
  if (operation.requestBody) {
    const name = operation.requestBody.content["application/json"].schema.$ref.split("/").pop();
    const schema = api.components.schemas[name], table = document.createElement("table");
    const head = document.createElement("tr");
    head.append(...["Field", "Range", "Meaning"].map((text) => { const cell = make("th", text); cell.scope = "col"; return cell; }));
    table.append(head);
    for (const [field, value] of Object.entries(schema.properties)) {
      const row = document.createElement("tr");
      const isRequired = (schema.required ?? []).includes(field);
      row.append(make("td", field), make("td", rangeOf(value) + (isRequired ? "; required" : "")), make("td", value.description));
      table.append(row);
    }
    section.append(table);
  }
  section.append(make("p", `Returns: ${operation.responses["200"].description}`));
  return section;
});
document.querySelector("main").replaceChildren(...sections);
document.body.dataset.ready = "true";
