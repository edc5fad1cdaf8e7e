-- Links of a Markdown page as links of the published site: other pages and the notebook are HTML
-- there; all other files are shown by the repository's host, whose address is in REPOSITORY. FOLDER
-- is the page's folder, empty or "doc/".
local repository, folder = os.getenv("REPOSITORY"), os.getenv("FOLDER")
local up = folder == "" and "" or "../"

local function published(target)
  if target:match("^%a+:") or target:match("^#") then return target end
  if target:match("deployments/github%-pages$") then return up .. "play.html" end
  if target:match("^%.%./%.%./") then return repository .. target:sub(6) end
  local page, anchor = target:match("^([^#]*)(.*)$")
  page = page:match("^%.%./") and page:sub(4) or folder .. page
  if page == "README.md" then return up .. "index.html" end
  if page:match("^%u+%.md$") or page:match("^doc/[%w_]+%.md$") or page:match("%.ipynb$") then
    return up .. page:gsub("%.%a+$", ".html") .. anchor
  end
  if page:match("^doc/[%w_]+%.png$") then return up .. page end
  return repository .. "/blob/HEAD/" .. page
end

function Link(link) link.target = published(link.target) return link end
function Image(image) image.src = published(image.src) return image end
